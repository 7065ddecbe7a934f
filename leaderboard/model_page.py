"""Reads of the model page and of comparisons: one run in depth, several side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import F

from leaderboard import model_rows, summaries
from leaderboard.model_rows import ModelRow
from leaderboard.models import RunSummary
from portal.submissions.models import Entrant
from problems.models import Problem, Target

MAX_COMPARED = 6


class ProblemOutcome(NamedTuple):
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
class InDepth:
    """A run with its figures and problem by problem: a line for each, (problem, sample) to (category, speedup)."""

    row: ModelRow
    lines: list[ProblemOutcome]
    cells: dict[tuple[str, int], tuple[str, float | None]]


def runs_of(entrant: Entrant, target: Target, size: str) -> list[ModelRow]:
    """All runs of a model on a target, without their figures, newest first."""
    found = summaries.seen().filter(run__entrant=entrant, target=target, size=size)
    return model_rows.read(found.order_by(F("run__date").desc(nulls_last=True), "-run_id"))


def places_with_runs(entrant: Entrant) -> list[tuple[str, str]]:
    """(target slug, size) pairs for which a model has a run, the ones with most problems solved first."""
    rows = summaries.seen().filter(run__entrant=entrant).order_by("-solved", "target__slug", "size")
    return list(dict.fromkeys(rows.values_list("target__slug", "size")))


def in_depth(row: ModelRow) -> InDepth:
    """A run over all active problems, in the order of their numbers; ``row`` was just read, without figures."""
    figures, detail = RunSummary.objects.values_list("figures", "detail").get(pk=row.summary_id)
    samples = {
        (slug, sample): (category, speedup) for slug, sample, category, speedup, *_ in detail["samples"]
    }
    return InDepth(row._replace(figures=figures), _lines(detail, _named(None)), samples)


def outcomes_of(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[list[ProblemOutcome]]:
    """One line per active problem for each of several runs; with ``slugs`` of these problems only."""
    rows = summaries.ensure(RunSummary.objects.filter(run__in=runs, target=target, size=size))
    found, named = dict(rows.values_list("run_id", "detail")), _named(slugs)
    return [_lines(found.get(run, {"outcomes": {}}), named) for run in runs]


def _named(slugs: Sequence[str] | None) -> list[tuple[str, str, int]]:
    problems = Problem.objects.active().order_by("number")
    if slugs is not None:
        problems = problems.filter(slug__in=slugs)
    return list(problems.values_list("slug", "title", "number"))


def _lines(detail: Mapping[str, Any], named: Sequence[tuple[str, str, int]]) -> list[ProblemOutcome]:
    outcomes = detail["outcomes"]
    return [ProblemOutcome(*names, *outcomes.get(names[0], _MISSING)) for names in named]


_MISSING = ("missing", None, None, None, None, None)


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
