"""Results of our harness that were made elsewhere: taken in as they are, marked, and never given a place.

A file holds one result (``score --json``), a list of them, or a document with ``results`` (``score-many``).
What a result says decides: its target is looked up by that very name, and a card of another kind than the
target names is refused. A document or a result that says ``"import": false`` (files made to cheat, or with planted
faults) is left out, and so are rows that ended by a fault of the evaluator: they are no results.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Value, When
from django.utils import timezone

from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.results import storable
from leaderboard.models import ImportedResult
from leaderboard.selectors import ProblemBoard
from leaderboard.services import GRADES
from portal.submissions.states import Verdict
from problems.models import Problem, Target

MAX_BYTES = 64 * 1024 * 1024
FAMILIES = ("h100", "h200", "b200")
"""Cards that targets are named after."""


class Refused(Exception):
    """A file or a result cannot be taken in; the text says why."""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one result, or of ``rows`` of a file (``number`` 0)."""

    file: str
    number: int
    state: str
    text: str
    rows: int = 1

    def __str__(self) -> str:
        where = f"{self.file}, result {self.number}" if self.number else self.file
        return f"{where}: {self.state}: {self.text}"


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One imported result as pages and the API show it; ``place`` is always None."""

    place: None
    imported: bool
    note: str
    label: str
    problem: str
    target: str
    size: str
    verdict: str
    code: str
    protocol: str
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    solution_ms: float | None
    reference_ms: float | None
    utilisation: float | None
    isolation_grade: str
    input_set: str
    current: bool
    stale: str
    problem_revision: str
    harness_version: str
    flags: list[Any]
    source_sha256: str
    content_hash: str
    origin: str
    measured_on: str | None
    imported_at: str


NOTE = "imported, not re-run here"
UNWANTED = "not to be imported"


def files_of(paths: list[Path]) -> list[Path]:
    """The files named, and every .json file of the folders named, by name."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return found


def import_file(path: Path) -> Iterator[Told]:
    """Take in every result of a file, each in a transaction of its own; one that is bad stops no other."""
    try:
        document, results = _read(path)
        wanted = _is_wanted(document)
    except Refused as why:
        yield Told(path.name, 0, "refused", str(why))
        return
    if not wanted:
        yield Told(path.name, 0, "left out", _word(document, "what", 200, UNWANTED), len(results))
        return
    faults = sum(map(_is_fault, results))
    if faults:
        text = (
            f"{faults} rows without a verdict: faults and time limits of the evaluator, which are no results"
        )
        yield Told(path.name, 0, "left out", text, faults)
    for number, result in enumerate(results, start=1):
        if _is_fault(result):
            continue
        try:
            if not _is_wanted(result):
                yield Told(path.name, number, "left out", _word(result, "what", 200, UNWANTED))
                continue
            made, created = import_result(result=result, origin=path.name, document=document)
        except Refused as why:
            yield Told(path.name, number, "refused", str(why))
        else:
            state = "imported" if created else "known"
            yield Told(path.name, number, state, f"{made.label}, {made.problem.slug} on {made.target.slug}")


def _is_wanted(part: Any) -> bool:
    """Whether a document or a result may come in; Refused for an "import" that is neither true nor false."""
    told = part.get("import", True) if isinstance(part, dict) else True
    if not isinstance(told, bool):
        raise Refused(f'has "import": {json.dumps(told)[:40]}, which is neither true nor false')
    return told


def _is_fault(result: Any) -> bool:
    return isinstance(result, dict) and result.get("verdict") == Verdict.INFRA_ERROR


def _read(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """The document around the results, and the results."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Refused(f"larger than {MAX_BYTES >> 20} MiB")
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Refused("is not JSON") from None
    if isinstance(found, list):
        return {}, found
    if isinstance(found, dict) and isinstance(found.get("results"), list):
        return found, found["results"]
    if isinstance(found, dict) and "verdict" in found:
        return found, [found]
    keys = ", ".join(list(found)[:6]) if isinstance(found, dict) else type(found).__name__
    raise Refused(f"holds no results of the harness (found: {keys})")


def import_result(*, result: Any, origin: str, document: dict[str, Any]) -> tuple[ImportedResult, bool]:
    """Keep one result; (row, whether it is new). Idempotent by its content. Raises Refused."""
    if not isinstance(result, dict):
        raise Refused("is not a result of the harness")
    canonical = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    known = ImportedResult.objects.filter(content_hash=digest).select_related("problem", "target").first()
    if known is not None:
        return known, False
    fields = _fields(result, document) | {
        "origin": origin[:200],
        "measured_on": _day(document.get("date")) or _day_of(origin),
        "imported_at": timezone.now(),
    }
    try:
        with transaction.atomic():
            return ImportedResult.objects.create(content_hash=digest, **fields), True
    except IntegrityError:  # another import of the same a moment before
        return ImportedResult.objects.select_related("problem", "target").get(content_hash=digest), False


def _fields(result: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    timing, roofline = (_part(result, key) for key in ("timing", "roofline"))
    environment = (
        _part(result, "environment") or _part(document, "environment") or _of_its_run(result, document)
    )
    target = _target(result, environment)
    grade = result.get("isolation_grade")
    return {
        "target": target,
        "problem": _problem(result),
        "size": _size(result, target),
        "label": re.split(r"[/\\]", _word(result, "file", 4096, "").rstrip("/\\"))[-1][:160]
        or "without a name",
        "source_sha256": _word(result, "source_sha256", 64, ""),
        "verdict": _verdict(result),
        "code": _word(result, "code", 80, ""),
        "protocol": _word(result, "protocol", 8),
        **{name: _figure(timing.get(name)) for name in _TIMES},
        "utilisation": _figure(roofline.get("utilisation")),
        "isolation_grade": grade if grade in GRADES else "none",
        "input_set": _word(result, "input_set", 16, ""),
        "problem_revision": _word(_part(result, "problem"), "revision", 64, ""),
        "harness_version": _word(result, "harness_version", 40, ""),
        "flags": storable(result.get("flags") if isinstance(result.get("flags"), list) else []),
        "environment": storable(environment),
        "result": storable(result),
    }


_TIMES = ("speedup", "speedup_low", "speedup_high", "solution_ms", "reference_ms")


def _part(of: dict[str, Any], key: str) -> dict[str, Any]:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _of_its_run(result: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """The environment of the run that a result names, in a document of several runs."""
    runs = document.get("runs")
    for run in runs if isinstance(runs, list) else []:
        if isinstance(run, dict) and run.get("run") == result.get("run"):
            return _part(run, "environment")
    return {}


def _word(of: dict[str, Any], key: str, limit: int, otherwise: str | None = None) -> str:
    value = of.get(key)
    if isinstance(value, str) and value.strip():
        return str(storable(value))[:limit]
    if otherwise is None:
        raise Refused(f"has no {key}")
    return otherwise


def _figure(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number that no float can hold
        return None


def _verdict(result: dict[str, Any]) -> str:
    told = _word(result, "verdict", 16)
    if told not in list(Verdict):
        raise Refused(f"has the unknown verdict {told!r}")
    return told


def _target(result: dict[str, Any], environment: dict[str, Any]) -> Target:
    """The target of exactly the name that the result gives; its card must be the one measured on."""
    slug = _word(result, "target", 40)
    target = Target.objects.filter(slug=slug).first()
    if target is None:
        raise Refused(f"is for the target {slug!r}, which is not known here")
    cards = environment.get("cards")
    names = [str(card).lower() for card in cards] if isinstance(cards, list) else []
    family = next((word for word in FAMILIES if slug.startswith(word)), "")
    if family and names and not any(family in name for name in names):
        raise Refused(f"says {slug}, but was measured on {cards[0]!s:.60}")  # type: ignore[index]
    return target


def _size(result: dict[str, Any], target: Target) -> str:
    """One of the sizes that the target judges: no board would show another."""
    size = _word(result, "size", 16)
    if size not in target.cells:
        raise Refused(f"has the size {size!r}; {target.slug} judges {', '.join(target.cells)}")
    return size


def _problem(result: dict[str, Any]) -> Problem:
    slug = _word(_part(result, "problem"), "slug", 80)
    problem = Problem.objects.filter(slug=slug).first()
    if problem is None:
        raise Refused(f"is for the problem {slug!r}, which is not known here")
    return problem


def _day(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


_ENDS_IN_A_DAY = re.compile(r".*_(\d{4})(\d\d)(\d\d)(_\w+)?\.json")


def _day_of(origin: str) -> date | None:
    """The day in which the name of a file ends, as those of docs/measurements do."""
    found = _ENDS_IN_A_DAY.fullmatch(origin)
    return _day("-".join(found.groups()[:3])) if found else None


# --- reading ---------------------------------------------------------------------------------------


ORDER = (
    Case(When(protocol="paper", then=Value(0)), When(protocol="quick", then=Value(1)), default=Value(2)),
    F("speedup").desc(nulls_last=True),
    "pk",
)
"""Within a problem: the full protocol first, then feedback, then what was only checked; the fastest of each first."""


def imported_of(board: ProblemBoard, limit: int = 50) -> list[ImportedRow]:
    """What was imported for one board, in the order of all, at most ``limit``."""
    found = ImportedResult.objects.filter(problem=board.problem, target=board.target, size=board.size)
    here = (board.problem.slug, board.target.slug, board.problem.score_revision)
    return [_row(*here, *values) for values in found.order_by(*ORDER).values_list(*_DATES, *_SHOWN)[:limit]]


def are_there() -> bool:
    """Whether anything was imported."""
    return ImportedResult.objects.exists()


def rows_of(found: Any) -> list[ImportedRow]:
    """Imported results as they are shown."""
    names = ("problem__slug", "target__slug", "problem__score_revision")
    return [_row(*values) for values in found.values_list(*names, *_DATES, *_SHOWN)]


def _row(
    problem: str, target: str, revision: str, measured_on: date | None, imported_at: datetime, *shown: Any
) -> ImportedRow:
    values = dict(zip(_SHOWN, shown, strict=True))
    return ImportedRow(
        place=None,
        imported=True,
        note=NOTE,
        problem=problem,
        target=target,
        current=not (stale := _stale(values, revision)),
        stale=stale,
        measured_on=measured_on.isoformat() if measured_on else None,
        imported_at=imported_at.isoformat(timespec="seconds"),
        **values,
    )


def _stale(values: dict[str, Any], revision: str) -> str:
    """Why a result would not count today, in words; empty while it would."""
    if values["problem_revision"] != revision:
        return "another revision of the problem"
    return "" if values["harness_version"] == PROTOCOL_VERSION else "another version of the judge"


_DATES = ("measured_on", "imported_at")
_SHOWN = (
    "label", "size", "verdict", "code", "protocol", "speedup", "speedup_low", "speedup_high", "solution_ms",
    "reference_ms", "utilisation", "isolation_grade", "input_set", "problem_revision", "harness_version",
    "flags", "source_sha256", "content_hash", "origin",
)  # fmt: skip


def public_row(row: ImportedRow) -> dict[str, Any]:
    """An imported result as JSON shows it."""
    return asdict(row)
