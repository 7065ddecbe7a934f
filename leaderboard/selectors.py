"""Reads of the boards. Pages, CSV, JSON, charts and exports all take their rows from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db.models import Count, F, Max, Q, QuerySet, RowRange, Window
from django.db.models.functions import RowNumber

from leaderboard import ranking
from leaderboard.models import RunSummary, Score
from problems.models import Problem, Target

PAGE = 50
Kind = Literal["", "model", "team", "person"]


@dataclass(frozen=True, slots=True)
class BoardRow:
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
    score_id: int
    order_key: float
    provisional: bool

    @property
    def tied(self) -> bool:
        """Whether the speedup cannot be told from the reference's own spread."""
        return abs(self.speedup - 1.0) <= self.noise_floor

    @property
    def memory_ratio(self) -> float | None:
        """Peak memory over the reference's; below 1 is leaner."""
        if not self.peak_bytes or not self.reference_peak_bytes:
            return None
        return self.peak_bytes / self.reference_peak_bytes


@dataclass(frozen=True, slots=True)
class ProblemBoard:
    """The board of one problem on one target at one size."""

    problem: Problem
    target: Target
    size: str
    policy: ranking.Policy
    kind: Kind
    rows: list[BoardRow]
    scores: int
    provisional: list[BoardRow] = field(default_factory=list)
    stale: int = 0

    @property
    def leader(self) -> BoardRow | None:
        """The first row, if any."""
        return self.rows[0] if self.rows else None


@dataclass(frozen=True, slots=True)
class Record:
    """A moment at which the best speedup of a problem rose."""

    at: datetime
    speedup: float
    entrant: str
    submission_id: str


@dataclass(frozen=True, slots=True)
class ProblemSummary:
    """One problem in the index of boards."""

    problem: Problem
    entrants: int
    best: BoardRow | None


_COLUMNS = (
    "id",
    "entrant_id",
    "entrant__name",
    "entrant__slug",
    "entrant__kind",
    "entrant__vendor",
    "run__name",
    "run__harness",
    "run__verified",
    "speedup",
    "speedup_low",
    "speedup_high",
    "noise_floor",
    "solution_ms",
    "reference_ms",
    "utilisation",
    "bound",
    "peak_bytes",
    "reference_peak_bytes",
    "isolation_grade",
    "mechanisms",
    "flags",
    "submission_id",
    "harness_version",
    "created_at",
    "provisional",
)


def ranked_sizes(target: Target) -> list[str]:
    """Sizes that have a board on a target."""
    return [str(size) for size in target.cells]


def standing(target: Target, size: str) -> QuerySet[Score]:
    """The one query below every board: what stands on a target at a size."""
    return Score.objects.standing().filter(target=target, size=size)


def problem_board(
    *, problem: Problem, target: Target, size: str, policy: ranking.Policy = "best", kind: Kind = ""
) -> ProblemBoard:
    """Rank one score per entrant: the fastest (``best``) or the newest (``latest``)."""
    scores = standing(target, size).filter(problem=problem)
    if kind:
        scores = scores.filter(entrant__kind=kind)
    rows = _place(_one_per(scores, "entrant_id", policy=policy))
    provisional, stale = _waiting(problem, target, size, kind)
    return ProblemBoard(problem, target, size, policy, kind, rows, scores.count(), provisional, stale)


def _waiting(problem: Problem, target: Target, size: str, kind: Kind) -> tuple[list[BoardRow], int]:
    """New bests without a place yet (place 0), and how many scores an older revision or judge gave."""
    here = Score.objects.filter(problem=problem, target=target, size=size)
    if kind:
        here = here.filter(entrant__kind=kind)
    rows = [_row(values) for values in _one_per(here.awaiting(), "entrant_id")]
    return rows, here.filter(ranked=True).shown().stale().count()


def _one_per(scores: QuerySet[Score], group: str, policy: ranking.Policy = "best") -> list[dict[str, Any]]:
    """One score per group in board order; the order of ranking.board_order, said in SQL."""
    by_speed = [F("speedup").desc(), F("created_at").asc(), F("id").asc()]
    by_age = [F("created_at").desc(), F("id").desc()]
    order = by_speed if policy == "best" else by_age
    numbered = scores.annotate(turn=Window(RowNumber(), partition_by=[F(group)], order_by=order))
    return list(
        numbered.filter(turn=1).order_by("-speedup", "created_at", "id").values("problem_id", *_COLUMNS)
    )


def _place(raw: Iterable[dict[str, Any]]) -> list[BoardRow]:
    rows = [_row(values) for values in raw]
    placed = ranking.places(rows, [row.noise_floor for row in rows])
    return [_with_place(row, place) for row, place in zip(rows, placed, strict=True)]


def _row(values: dict[str, Any], place: int = 0) -> BoardRow:
    return BoardRow(
        place=place,
        entrant_id=values["entrant_id"],
        entrant=values["entrant__name"],
        entrant_slug=values["entrant__slug"],
        kind=values["entrant__kind"],
        vendor=values["entrant__vendor"],
        run=values["run__name"],
        harness=values["run__harness"],
        verified=values["run__verified"],
        submission_id=str(values["submission_id"]),
        score_id=values["id"],
        order_key=values["created_at"].timestamp(),
        **{
            name: values[name]
            for name in _COLUMNS
            if "__" not in name and name not in ("id", "entrant_id", "submission_id")
        },
    )


def _with_place(row: BoardRow, place: int) -> BoardRow:
    return BoardRow(**(_fields_of(row) | {"place": place}))


def _fields_of(row: BoardRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in BoardRow.__slots__}


def record_history(*, problem: Problem, target: Target, size: str) -> list[Record]:
    """The scores that raised the record, oldest first."""
    before = Window(
        Max("speedup"), order_by=[F("created_at").asc(), F("id").asc()], frame=RowRange(start=None, end=-1)
    )
    rows = (
        standing(target, size)
        .filter(problem=problem)
        .annotate(before=before)
        .filter(Q(before=None) | Q(speedup__gt=F("before")))
        .order_by("created_at", "id")
        .values_list("created_at", "speedup", "entrant__name", "submission_id")
    )
    return [
        Record(at, speedup, entrant, str(submission))
        for at, speedup, entrant, submission in rows
        if speedup is not None
    ]


def board_index(*, target: Target, size: str) -> list[ProblemSummary]:
    """Every active problem with its leader on a target, in three queries whatever their number."""
    scores = standing(target, size)
    best = {row["problem_id"]: _row(row, place=1) for row in _one_per(scores, "problem_id")}
    counts = dict(
        scores.order_by().values_list("problem_id").annotate(entrants=Count("entrant_id", distinct=True))
    )
    return [
        ProblemSummary(problem, counts.get(problem.pk, 0), best.get(problem.pk))
        for problem in Problem.objects.active()
    ]


def solved_problems(target: str) -> list[int]:
    """Primary keys of the problems with a correct ranked score on a target (slug), at any size.

    A new best that waits for its second measurement counts: it is correct, only its place is open.
    """
    scores = Score.objects.rankable().filter(target__slug=target, target__active=True, correct=True)
    return list(scores.order_by().values_list("problem_id", flat=True).distinct())


def targets_with_counts() -> list[tuple[Target, int]]:
    """Active targets that rank, with the number of scores that stand on each."""
    counts = dict(Score.objects.standing().order_by().values_list("target_id").annotate(scores=Count("id")))
    rows = Target.objects.active().filter(ranked=True)
    ordered = sorted(rows, key=lambda row: (not row.spec.get("official"), row.slug))
    return [(row, counts.get(row.pk, 0)) for row in ordered]


def has_verified_runs() -> bool:
    """Whether the model board has a row anywhere."""
    return RunSummary.objects.filter(run__verified=True, run__entrant__kind="model").exists()


def public_row(row: BoardRow) -> dict[str, Any]:
    """A row as CSV and JSON show it."""
    hidden = ("score_id", "order_key", "entrant_id")
    values = {name: value for name, value in asdict(row).items() if name not in hidden}
    if row.provisional:
        values["place"] = None
    return values | {"created_at": row.created_at.isoformat(timespec="seconds")}


PUBLIC_COLUMNS = tuple(
    name for name in BoardRow.__slots__ if name not in ("score_id", "order_key", "entrant_id")
)
