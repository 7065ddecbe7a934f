"""Reads of the boards. Pages, CSV, JSON, charts and exports all take their rows from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet, Sum

from leaderboard import cells, ranking, summaries
from leaderboard.models import BoardCell, Score
from portal.submissions import serving
from portal.submissions.models import ModelRun
from problems.bounds import bound_on
from problems.models import Problem, Target
from problems.solved import Leader, Leaders

PAGE = 50
Kind = Literal["", "model", "team", "person"]


class BoardRow(NamedTuple):
    """One line of a problem board: the standing score of one entrant."""

    place: int
    entrant_id: int
    entrant: str
    entrant_slug: str
    kind: str
    vendor: str
    run: str
    harness: str
    verified: bool
    speedup: float
    speedup_low: float
    speedup_high: float
    noise_floor: float
    solution_ms: float | None
    reference_ms: float | None
    utilisation: float | None
    bound: str
    peak_bytes: int | None
    reference_peak_bytes: int | None
    isolation_grade: str
    mechanisms: list[Any]
    flags: list[Any]
    submission_id: str
    harness_version: str
    created_at: datetime
    provisional: bool
    score_id: int

    @property
    def named_run(self) -> str:
        """The run where somebody named it; `unsorted` is a word of ours."""
        return "" if self.run == ModelRun.Harness.UNSORTED else self.run

    @property
    def tied(self) -> bool:
        """Whether the speedup cannot be told from the reference's own spread."""
        return ranking.is_tie(self.speedup, self.noise_floor)

    @property
    def memory_ratio(self) -> float | None:
        """Peak memory over the reference's; below 1 is leaner."""
        if not self.peak_bytes or not self.reference_peak_bytes:
            return None
        return self.peak_bytes / self.reference_peak_bytes


@dataclass(frozen=True, slots=True)
class Record:
    """A moment at which the best speedup of a problem rose."""

    at: datetime
    speedup: float
    entrant: str
    submission_id: str


@dataclass(frozen=True, slots=True)
class ProblemBoard:
    """The board of one problem on one target at one size: the rows of a page, and what is told of all.

    ``history`` are the scores that raised its record, oldest first, of all kinds of entrants.
    """

    problem: Problem
    target: Target
    size: str
    policy: ranking.Policy
    kind: Kind
    rows: list[BoardRow]
    scores: int
    leader: BoardRow | None
    speedups: list[float]
    page: Page[cells.Line]
    provisional: list[BoardRow]
    stale: int
    history: list[Record]

    @property
    def count(self) -> int:
        """Entrants on all pages."""
        return len(self.speedups)


class ProblemSummary(NamedTuple):
    """One problem in the index of boards."""

    slug: str
    title: str
    number: int
    level: int
    entrants: int
    best: BoardRow | None


_COLUMNS = (
    "entrant_id", "entrant__name", "entrant__slug", "entrant__kind", "entrant__vendor", "run__name", "run__harness",
    "run__verified", "speedup", "speedup_low", "speedup_high", "noise_floor", "solution_ms", "reference_ms",
    "utilisation", "bound", "peak_bytes", "reference_peak_bytes", "isolation_grade", "mechanisms", "flags",
    "submission_id", "harness_version", "created_at", "provisional", "id",
)  # fmt: skip
"""What a BoardRow holds after its place, in its order."""

_SUBMISSION = _COLUMNS.index("submission_id")


def ranked_sizes(target: Target) -> list[str]:
    """Sizes that have a board on a target."""
    return [str(size) for size in target.cells]


def problem_board(
    *,
    problem: Problem,
    target: Target,
    size: str,
    policy: ranking.Policy = "best",
    kind: Kind = "",
    page: int | None = None,
    cell: BoardCell | None = None,
) -> ProblemBoard:
    """Rank one score per entrant: the fastest (``best``) or the newest (``latest``).

    ``page`` counts from 1, and beyond the last one it is the last; without it all rows are read.
    ``cell`` is what is kept of the board, if it was read already.
    """
    cell = (
        cells.current(cell) if cell else cells.fresh(problem=problem, target=target, size=size, policy=policy)
    )
    lines = cells.lines(cell, policy, kind)
    places = ranking.places(lines, [line.noise_floor for line in lines])
    place_of = {line.score_id: place for line, place in zip(lines, places, strict=True)}
    pages = Paginator(lines, PAGE if page else max(len(lines), 1)).get_page(page)
    wanted, marks = [line.score_id for line in pages], [cells.Mark(*mark) for mark in cell.records]
    told = (line.score_id for line in lines[:1]), (mark.score_id for mark in marks)
    rows = rows_of(chain(wanted, *told), place_of)
    provisional = rows_of(cells.waiting(cell, kind), {}, of=Score.objects.awaiting()) if cell.waiting else {}
    return ProblemBoard(
        problem=problem,
        target=target,
        size=size,
        policy=policy,
        kind=kind,
        rows=[rows[pk] for pk in wanted if pk in rows],
        scores=cells.counted(cell.scores, kind),
        leader=rows.get(lines[0].score_id) if lines else None,
        speedups=[line.speedup for line in lines],
        page=pages,
        provisional=list(provisional.values()),
        stale=cells.counted(cell.stale, kind),
        history=[_record(rows[mark.score_id]) for mark in marks if mark.score_id in rows],
    )


def _record(row: BoardRow) -> Record:
    return Record(row.created_at, row.speedup, row.entrant, row.submission_id)


def rows_of(
    ids: Iterable[int], places: Mapping[int, int], of: QuerySet[Score] | None = None
) -> dict[int, BoardRow]:
    """Rows by id of the score, in the order of the ids; what does not stand (any more) is left out."""
    wanted = list(dict.fromkeys(ids))
    scores = Score.objects.standing() if of is None else of
    rows = scores.filter(pk__in=wanted).order_by().values_list(*_COLUMNS)
    found = {row[-1]: row for row in rows}
    return {pk: _row(found[pk], places.get(pk, 0)) for pk in wanted if pk in found}


def _row(values: Sequence[Any], place: int) -> BoardRow:
    submission = str(values[_SUBMISSION])
    return BoardRow._make((place, *values[:_SUBMISSION], submission, *values[_SUBMISSION + 1 :]))


def board_index(*, target: Target, size: str) -> list[ProblemSummary]:
    """Every active problem with its leader on a target; as many queries whatever their number."""
    here = cells.ensure(BoardCell.objects.filter(target=target, size=size))
    found = {row[0]: row[1:] for row in here.values_list("problem_id", "leader_id", "entrants")}
    leaders = [leader for leader, _ in found.values() if leader is not None]
    best = rows_of(leaders, dict.fromkeys(leaders, 1))
    problems = Problem.objects.active().values_list("pk", "slug", "title", "number", "level")
    return [
        ProblemSummary(slug, title, number, level, entrants, best.get(leader or 0))
        for pk, slug, title, number, level in problems
        for leader, entrants in [found.get(pk, (None, 0))]
    ]


def leaders() -> Leaders | None:
    """Who leads on each problem on the usual target, at its first ranked size; None before there is a board."""
    target = usual_target()
    if target is None:
        return None
    size = ranked_sizes(target)[0]
    lines = board_index(target=target, size=size)
    return Leaders(
        target.slug,
        size,
        {
            line.slug: Leader(line.best.speedup, line.entrants, line.best.tied)
            for line in lines
            if line.best is not None
        },
    )


def solved_problems(target: str) -> list[int]:
    """Primary keys of the problems with a correct ranked score on a target (slug), at any size.

    A new best that waits for its second measurement counts: it is correct, only its place is open.
    """
    here = cells.ensure(BoardCell.objects.filter(target__slug=target, target__active=True))
    solved = here.filter(Q(standing__gt=0) | Q(waiting__gt=0)).order_by()
    return list(solved.values_list("problem_id", flat=True).distinct())


def targets_with_counts() -> list[tuple[Target, int]]:
    """Active targets that rank, with the number of scores that stand on each."""
    here = cells.ensure(BoardCell.objects.all())
    counts = dict(here.order_by().values_list("target_id").annotate(scores=Sum("standing")))
    rows = Target.objects.active().filter(ranked=True)
    ordered = sorted(rows, key=lambda row: (not row.spec.get("official"), row.slug))
    return [(row, counts.get(row.pk, 0)) for row in ordered]


def usual_target() -> Target | None:
    """The target whose boards open where none is asked for; None before there is a board.

    That with most scores; before any score stands, one that a host serves; else the official one.
    """
    served = serving.served()
    boards = [(scores, row.pk in served, row) for row, scores in targets_with_counts() if row.cells]
    return max(boards, key=itemgetter(0, 1))[2] if boards else None


def has_verified_runs() -> bool:
    """Whether the model board has a row anywhere."""
    return summaries.seen().filter(run__verified=True, run__entrant__kind="model").exists()


_HIDDEN = ("entrant_id", "score_id")
PUBLIC_COLUMNS = tuple(name for name in BoardRow._fields if name not in _HIDDEN)


def public_row(row: BoardRow, target: Target) -> dict[str, Any]:
    """A row of a target's board as CSV and JSON show it."""
    values = row._asdict() | {
        "created_at": row.created_at.isoformat(timespec="seconds"),
        "bound": bound_on(row.bound, target),
    }
    for name in _HIDDEN:
        del values[name]
    if row.provisional:
        values["place"] = None
    return values
