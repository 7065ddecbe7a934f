"""Published figures of a problem, and beside them what was measured, by whom, per target; never mixed."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.conf import settings

from leaderboard import cells, selectors
from leaderboard.models import BoardCell
from leaderboard.published import published
from leaderboard.ranking import counted_speedup
from leaderboard.selectors import BoardRow
from problems.models import Problem, Target

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Own:
    """A sample of ours that this project judged outside of any portal, as docs/measurements holds it.

    ``speedup`` is None where the run was for correctness only. ``study`` names a run at a size of its own, which
    ``size`` then spells out, and ``published_size`` says whether that is the size of a published figure.
    """

    target: str
    size: str
    file: str
    verdict: str
    protocol: str
    speedup: float | None
    low: float | None
    high: float | None
    on_the_card: float | None
    flags: tuple[str, ...]
    date: str
    study: str = ""
    published_size: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure on one target: that of its board's leader or one of ours; neither where nobody measured."""

    target: Target
    size: str
    leader: BoardRow | None = None
    own: Own | None = None


@dataclass(frozen=True, slots=True)
class Beside:
    """The published figures of a problem and what was measured."""

    published: list[dict[str, Any]]
    hardware: str
    measured: list[Measured]


def beside(problem: Problem) -> Beside | None:
    """None for a problem of which nothing was published and no sample of ours was measured."""
    rows = [row for row in published()["case_studies"] if row["slug"] == problem.slug]
    ours = own_samples().get(problem.slug, []) + own_studies().get(problem.slug, [])
    if not (rows or ours):
        return None
    kept = cells.ensure(BoardCell.objects.filter(problem=problem))
    leaders = {
        (target, size): leader
        for target, size, leader in kept.values_list("target_id", "size", "leader_id")
        if leader is not None
    }
    found = selectors.rows_of(list(leaders.values()), {})
    targets = sorted(
        Target.objects.active(), key=lambda row: (not row.spec.get("official"), not row.ranked, row.slug)
    )
    measured: list[Measured] = []
    for target in targets:
        of_boards = {size: found.get(leaders.get((target.pk, size), 0)) for size in _board_sizes(target)}
        figures = [Measured(target, size, leader=leader) for size, leader in of_boards.items() if leader]
        figures += [Measured(target, own.size, own=own) for own in ours if own.target == target.slug]
        if target.spec.get("official"):
            figures += [
                Measured(target, size) for size in of_boards if size not in {row.size for row in figures}
            ]
        measured += figures
    return Beside(rows, published()["hardware"], measured)


def _board_sizes(target: Target) -> list[str]:
    return selectors.ranked_sizes(target) if target.ranked else []


@cache
def own_samples() -> dict[str, list[Own]]:
    """{problem: samples} of docs/measurements/*_samples_*.json, as ``score-many`` writes them.

    One for each target, size and file: the full protocol stands before a check, then the newer row; ``quick`` is
    feedback and is not shown. What was measured of an earlier text of a sample says nothing of the file that is there
    now.
    """
    found: dict[str, dict[tuple[str, str, str], tuple[tuple[bool, str], Own]]] = {}
    for path, day in _files("samples"):
        with _left_out_if_odd(path):
            document = json.loads(path.read_text(encoding="utf-8"))
            for row in document if isinstance(document, list) else document["results"]:
                if row["protocol"] == "quick" or row["source_sha256"] != _digest(Path(row["file"]).name):
                    continue
                sample, weight = _sample(row, day), (row["protocol"] == "paper", day)
                of, key = (
                    found.setdefault(row["problem"]["slug"], {}),
                    (sample.target, sample.size, sample.file),
                )
                if key not in of or weight >= of[key][0]:
                    of[key] = weight, sample
    return {slug: [sample for _, sample in of.values()] for slug, of in found.items()}


@cache
def own_studies() -> dict[str, list[Own]]:
    """{problem: studies} of docs/measurements/*_studies_*.json, as tests/bench/bench_case_studies.py writes them.

    Of each study the newest row that has a speedup. These files hold no hash of the source: what was measured may
    have been an earlier text of the file, so the date stands with it, and a file that is gone is left out.
    """
    problems = _problems_of_samples()
    found: dict[str, dict[tuple[str, str], Own]] = {}
    for path, day in _files("studies"):
        target = path.stem.partition("_")[0]
        with _left_out_if_odd(path):
            document = json.loads(path.read_text(encoding="utf-8"))
            told = re.search(r"--protocol[ =](\w+)", document["command"])
            for row in document["rows"]:
                if "speedup" in row and row["file"] in problems:
                    newer = _study(row, target, told[1] if told else "quick", day)
                    found.setdefault(problems[row["file"]], {})[target, row["study"]] = newer
    return {slug: list(of.values()) for slug, of in found.items()}


_DAY = re.compile(r"_(\d{8})(?=_|$)")


def _files(kind: str) -> Iterator[tuple[Path, str]]:
    """Each stored file of a kind and its day, the oldest first: its name begins with the target and holds the day;
    one without a day is left out."""
    days: dict[Path, str] = {}
    for path in Path(settings.BASE_DIR, "docs", "measurements").glob(f"*_{kind}_*.json"):
        if found := _DAY.search(path.stem):
            with _left_out_if_odd(path):
                days[path] = date.fromisoformat(found[1]).isoformat()
    yield from sorted(days.items(), key=lambda item: (item[1], item[0].stem))


@contextmanager
def _left_out_if_odd(path: Path) -> Iterator[None]:
    """What is not as it is written today breaks no page: from there on the file is left out, which the log says."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        log.warning("%s is left out: %r", path.name, error)


def _samples() -> Path:
    return Path(settings.BASE_DIR, "problems", "samples")


def _digest(name: str) -> str:
    path = _samples() / name
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _problems_of_samples() -> dict[str, str]:
    """{file: problem} of the samples that are there."""
    listed = _samples() / "samples.toml"
    rows = tomllib.loads(listed.read_text(encoding="utf-8"))["samples"] if listed.is_file() else []
    return {row["file"]: row["problem"] for row in rows if (_samples() / row["file"]).is_file()}


def _sample(row: dict[str, Any], day: str) -> Own:
    timing = row.get("timing") or {}
    card = (timing.get("card") or {}).get("on_the_card")
    return Own(
        target=row["target"],
        size=row["size"],
        file=Path(row["file"]).name,
        verdict=row["verdict"],
        protocol=row["protocol"],
        date=day,
        **_figures(timing, card, row.get("flags") or []),
    )


def _study(row: dict[str, Any], target: str, protocol: str, day: str) -> Own:
    return Own(
        target=target,
        size=", ".join(f"{name} {value}" for name, value in row["size"].items()),
        file=row["file"],
        verdict=row["verdict"],
        protocol=protocol,
        date=day,
        study=row["study"],
        published_size=row["published"] is not None,
        **_figures(row, row.get("on_the_card"), row.get("flags") or []),
    )


_SAID_ANYWAY = {"unranked_protocol", "untimed_target"}
"""Flags that say what the protocol or the missing time says."""


def _figures(timing: dict[str, Any], card: dict[str, Any] | None, flags: list[str]) -> dict[str, Any]:
    speedup = timing.get("speedup")
    return {
        "speedup": None if speedup is None else counted_speedup(float(speedup), flags),
        "low": _number(timing.get("speedup_low")),
        "high": _number(timing.get("speedup_high")),
        "on_the_card": _number(card["value"]) if card else None,
        "flags": tuple(flag for flag in flags if flag not in _SAID_ANYWAY),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
