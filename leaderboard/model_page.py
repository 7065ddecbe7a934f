"""Reads of the model page and of comparisons: one run in depth, several side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from leaderboard import ranking, summaries
from leaderboard.model_board import ModelRow, current_figures, row_of
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


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in a model's list of runs."""

    run: ModelRun
    day: date
    pass_1: float
    fast_1: float
    shown: bool


def runs_of(entrant: Entrant, target: Target, size: str) -> list[RunSummary]:
    """Summaries of all runs of a model on a target, newest first."""
    found = RunSummary.objects.filter(run__entrant=entrant, target=target, size=size)
    return list(
        found.select_related("run__entrant").order_by(F("run__date").desc(nulls_last=True), "-run_id")
    )


def places_with_runs(entrant: Entrant) -> list[tuple[str, str]]:
    """(target slug, size) pairs for which a model has a run, the ones with most problems solved first."""
    rows = RunSummary.objects.filter(run__entrant=entrant).order_by("-solved", "target__slug", "size")
    return list(dict.fromkeys(rows.values_list("target__slug", "size")))


def model_rows(found: Sequence[RunSummary], target: Target, size: str) -> list[ModelRow]:
    """Runs with the figures of their present basis."""
    values = current_figures(found, target=target, size=size)
    return [row_of(summary, values[summary.pk]) for summary in found]


def outcomes(*, run_id: int, target: Target, size: str) -> list[ProblemOutcome]:
    """One line per problem of the track, in the order of their numbers."""
    best = _best_by_problem(run_id, target, size)
    return [
        _outcome(problem, best.get(problem.pk)) for problem in Problem.objects.active().order_by("number")
    ]


def _best_by_problem(run_id: int, target: Target, size: str) -> dict[int, dict[str, Any]]:
    """The score that speaks for a run at each problem: ranked before not, then the faster."""
    turn = Window(
        RowNumber(),
        partition_by=[F("problem")],
        order_by=[F("ranked").desc(), F("speedup").desc(nulls_last=True), F("id").asc()],
    )
    scores: Any = summaries.counted(target, size).filter(run_id=run_id).annotate(turn=turn)
    rows = scores.filter(turn=1).values(
        "problem_id",
        "verdict",
        "ranked",
        "speedup",
        "speedup_low",
        "speedup_high",
        "utilisation",
        "submission_id",
    )
    return {row["problem_id"]: row for row in rows}


def _outcome(problem: Problem, row: dict[str, Any] | None) -> ProblemOutcome:
    counts = bool(row and row["ranked"])
    return ProblemOutcome(
        problem=problem.slug,
        title=problem.title,
        number=problem.number,
        category=ranking.category(row["verdict"], row["speedup"]) if row else "missing",
        speedup=row["speedup"] if row and counts else None,
        low=row["speedup_low"] if row and counts else None,
        high=row["speedup_high"] if row and counts else None,
        utilisation=row["utilisation"] if row and counts else None,
        submission_id=str(row["submission_id"]) if row else None,
    )


def heat_cells(*, run_id: int, target: Target, size: str) -> dict[tuple[str, int], tuple[str, float | None]]:
    """(problem, sample) to (category, speedup) for the heat map."""
    found = summaries.last_steps(summaries.entries(run_id=run_id, target=target, size=size))
    return {
        (e.problem, e.sample): (ranking.category(e.verdict, e.speedup), e.speedup if e.counts else None)
        for e in found
    }


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
