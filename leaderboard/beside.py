"""Published figures of a problem, and beside them what this judge measured, per target; never mixed."""

from __future__ import annotations

import json
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


@dataclass(frozen=True, slots=True)
class OwnSample:
    """A solution of ours that was judged outside of the portal, as docs/measurements holds it.

    ``speedup`` is None where the run was for correctness only.
    """

    target: str
    size: str
    file: str
    verdict: str
    speedup: float | None
    date: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What there is on one target: who leads its board, else a sample of ours, else nothing."""

    target: Target
    size: str
    leader: BoardRow | None
    sample: OwnSample | None


@dataclass(frozen=True, slots=True)
class Beside:
    """The published figures of a problem and what was measured here."""

    published: list[dict[str, Any]]
    hardware: str
    measured: list[Measured]


def beside(problem: Problem) -> Beside | None:
    """None for a problem of which nothing was published."""
    rows = [row for row in published()["case_studies"] if row["slug"] == problem.slug]
    if not rows:
        return None
    ours = own_samples().get(problem.slug, {})
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
    measured = []
    for target in targets:
        sample = ours.get(target.slug)
        for size in selectors.ranked_sizes(target) if target.ranked else [sample.size if sample else ""]:
            leader = found.get(leaders.get((target.pk, size), 0)) if target.ranked else None
            here = sample if sample and sample.size == size else None
            if leader or here or target.spec.get("official"):
                measured.append(Measured(target, size, leader, here))
    return Beside(rows, published()["hardware"], measured)


@cache
def own_samples() -> dict[str, dict[str, OwnSample]]:
    """{problem: {target: sample}} of docs/measurements/*_samples_*.json, as ``score-many`` writes them.

    The full protocol stands before a check, then the newer file; ``quick`` is feedback and is not shown. What was
    measured of an earlier text of a sample says nothing of the file that is there now.
    """
    found: dict[str, dict[str, tuple[tuple[bool, str], OwnSample]]] = {}
    for path in Path(settings.BASE_DIR, "docs", "measurements").glob("*_samples_*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        day = date.fromisoformat(path.stem.rpartition("_")[2]).isoformat()
        for row in document if isinstance(document, list) else document["results"]:
            if row["protocol"] == "quick" or row["source_sha256"] != _digest(Path(row["file"]).name):
                continue
            of = found.setdefault(row["problem"]["slug"], {})
            weight = (row["protocol"] == "paper", day)
            if row["target"] not in of or weight > of[row["target"]][0]:
                of[row["target"]] = weight, _sample(row, day)
    return {slug: {target: sample for target, (_, sample) in of.items()} for slug, of in found.items()}


def _digest(name: str) -> str:
    path = Path(settings.BASE_DIR, "problems", "samples", name)
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _sample(row: dict[str, Any], day: str) -> OwnSample:
    speedup = (row.get("timing") or {}).get("speedup")
    counted = None if speedup is None else counted_speedup(speedup, row.get("flags") or ())
    return OwnSample(row["target"], row["size"], Path(row["file"]).name, row["verdict"], counted, day)
