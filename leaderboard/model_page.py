"""Reads of the model page and of comparisons: one run in depth, several side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import F

from leaderboard import summaries
from leaderboard.model_board import ModelRow, row_of
from leaderboard.models import RunSummary
from portal.submissions.models import Entrant, ModelRun
from problems.models import Problem, Target

MAX_COMPARED = 6


@dataclass(frozen=True, slots=True)
class ProblemOutcome:
    """What a run achieved at one problem: its best correct sample, else how its first one failed."""

    problem: str
    title: str
    number: int
    category: str
    speedup: float | None
    low: float | None
    high: float | None
    utilisation: float | None
    submission_id: str | None
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in a model's list of runs."""

    run: ModelRun
    day: date
    pass_1: float
    fast_1: float
    shown: bool


def runs_of(entrant: Entrant, target: Target, size: str) -> list[ModelRow]:
    """All runs of a model on a target with their figures, newest first."""
    found = summaries.ensure(RunSummary.objects.filter(run__entrant=entrant, target=target, size=size))
    newest = found.select_related("run__entrant").order_by(F("run__date").desc(nulls_last=True), "-run_id")
    return [row_of(summary) for summary in newest.defer("detail")]


def places_with_runs(entrant: Entrant) -> list[tuple[str, str]]:
    """(target slug, size) pairs for which a model has a run, the ones with most problems solved first."""
    rows = RunSummary.objects.filter(run__entrant=entrant).order_by("-solved", "target__slug", "size")
    return list(dict.fromkeys(rows.values_list("target__slug", "size")))


def outcomes(*, run_id: int, target: Target, size: str) -> list[ProblemOutcome]:
    """One line per active problem, in the order of their numbers."""
    return outcomes_of([run_id], target=target, size=size)[0]


def outcomes_of(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[list[ProblemOutcome]]:
    """The same for several runs, in as many queries as for one; with ``slugs`` of these problems only."""
    found = _details(runs, target, size)
    problems = Problem.objects.active().order_by("number").values_list("slug", "title", "number")
    if slugs is not None:
        problems = problems.filter(slug__in=slugs)
    named = list(problems)
    return [
        [
            ProblemOutcome(slug, title, number, *found[run]["outcomes"].get(slug, _MISSING))
            for slug, title, number in named
        ]
        for run in runs
    ]


_MISSING = ("missing", None, None, None, None, None)


def _details(runs: Sequence[int], target: Target, size: str) -> dict[int, dict[str, Any]]:
    rows = summaries.ensure(RunSummary.objects.filter(run__in=runs, target=target, size=size))
    nothing: dict[int, dict[str, Any]] = {run: {"outcomes": {}, "samples": []} for run in runs}
    return nothing | dict(rows.values_list("run_id", "detail"))


def heat_cells(*, run_id: int, target: Target, size: str) -> dict[tuple[str, int], tuple[str, float | None]]:
    """(problem, sample) to (category, speedup) for the heat map."""
    samples = _details([run_id], target, size)[run_id]["samples"]
    return {(slug, sample): (category, speedup) for slug, sample, category, speedup, *_ in samples}


# --- comparing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duel:
    """One problem for all compared runs: who is fastest, and whether the intervals say so."""

    problem: str
    title: str
    number: int
    cells: list[ProblemOutcome]
    winner: int | None
    clear: bool
    ratio: float | None


def duels(all_outcomes: Sequence[Sequence[ProblemOutcome]]) -> list[Duel]:
    """Line the runs up problem by problem. ``winner`` is an index, None when nobody solved it.

    The win is *clear* when the winner's lower limit is above every other run's upper limit; ``ratio`` is
    the winner's speedup over the runner-up's.
    """
    return [_duel(list(cells)) for cells in zip(*all_outcomes, strict=True)]


def _duel(cells: list[ProblemOutcome]) -> Duel:
    order = sorted(
        (i for i, cell in enumerate(cells) if cell.speedup is not None),
        key=lambda i: -(cells[i].speedup or 0.0),
    )
    first = cells[0]
    winner = order[0] if order else None
    others = [cells[i] for i in order[1:]]
    clear = winner is not None and all((cells[winner].low or 0.0) > (o.high or math.inf) for o in others)
    ratio = None
    if winner is not None and others:
        ratio = (cells[winner].speedup or 0.0) / (others[0].speedup or math.inf)
    return Duel(first.problem, first.title, first.number, cells, winner, clear, ratio)


def wins(found: Iterable[Duel], runs: int) -> list[tuple[int, int]]:
    """(wins, clear wins) per run."""
    listed = list(found)
    return [
        (sum(d.winner == i for d in listed), sum(d.winner == i and d.clear for d in listed))
        for i in range(runs)
    ]
