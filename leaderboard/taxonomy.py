"""Where each model succeeds: shares of solved and faster problems by level, parallelism and bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaderboard.bands import Band, wilson
from leaderboard.model_page import ProblemOutcome, outcomes_of
from leaderboard.model_rows import ModelRow
from problems.models import Problem, Target


@dataclass(frozen=True, slots=True)
class Cell:
    """One run in one class of problems."""

    solved: int
    faster: int
    problems: int

    @property
    def share(self) -> float:
        """Share of the class solved."""
        return self.solved / self.problems if self.problems else 0.0

    @property
    def band(self) -> Band:
        """95 % Wilson interval of the share."""
        return wilson(self.solved, self.problems)

    @property
    def step(self) -> int:
        """Shade of the cell, 0 to 5."""
        return round(5 * self.share)


@dataclass(frozen=True, slots=True)
class TaxonomyTable:
    """One way to divide the track: class names and a line of cells per run."""

    title: str
    classes: list[tuple[str, int]]
    lines: list[tuple[ModelRow, list[Cell]]]


def _levels(problem: Problem) -> list[str]:
    return [f"level {problem.level}"]


def _parallelism(problem: Problem) -> list[str]:
    return [str(kind) for kind in problem.parallelism] or ["none named"]


def _bound(problem: Problem) -> list[str]:
    return [problem.bound or "not known"]


DIVISIONS: tuple[tuple[str, Callable[[Problem], list[str]]], ...] = (
    ("By level", _levels),
    ("By what bounds the roofline", _bound),
    ("By parallelism", _parallelism),
)


def taxonomy(
    *, rows: Sequence[ModelRow], target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[TaxonomyTable]:
    """All divisions of the track for the given runs, with ``slugs`` of these problems of it.

    A problem with several kinds of parallelism counts in each.
    """
    track = Problem.objects.active().of_track().defer("spec").order_by("number")
    problems = list(track if slugs is None else track.filter(slug__in=slugs))
    found = [
        {line.problem: line for line in lines}
        for lines in outcomes_of([row.run_id for row in rows], target=target, size=size)
    ]
    return [_table(title, classes_of, problems, rows, found) for title, classes_of in DIVISIONS]


def _table(
    title: str,
    classes_of: Callable[[Problem], list[str]],
    problems: Sequence[Problem],
    rows: Sequence[ModelRow],
    found: Sequence[dict[str, ProblemOutcome]],
) -> TaxonomyTable:
    members: dict[str, list[str]] = {}
    for problem in problems:
        for name in classes_of(problem):
            members.setdefault(name, []).append(problem.slug)
    names = sorted(members)
    lines = [
        (row, [_cell(members[name], results) for name in names])
        for row, results in zip(rows, found, strict=True)
    ]
    return TaxonomyTable(title, [(name, len(members[name])) for name in names], lines)


def _cell(slugs: Sequence[str], results: dict[str, ProblemOutcome]) -> Cell:
    speedups = [results[slug].speedup for slug in slugs if slug in results]
    solved = [value for value in speedups if value is not None]
    return Cell(len(solved), sum(value > 1 for value in solved), len(slugs))
