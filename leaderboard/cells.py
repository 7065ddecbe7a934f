"""What stands on each problem board, kept at write time: who is best, who is newest, how the record rose.

A reader takes a cell as it is stored; only one that is *due* is computed again first. Triggers mark a cell
due in the very transaction that changes something it was taken over (triggers.py), and a new protocol
version makes every cell due. So a board costs the same however many submissions lie below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from leaderboard import ranking
from leaderboard.models import BoardCell, Score
from leaderboard.querysets import RULES
from problems.models import Problem, Target


class Line(NamedTuple):
    """One entrant's place in a cell, as it is stored."""

    score_id: int
    speedup: float
    noise_floor: float
    kind: str


class Mark(NamedTuple):
    """One step of a record, as it is stored; ``at`` is in ISO format."""

    score_id: int
    speedup: float
    at: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A score that stands, as the ranking rules need it; ``order_key`` is its time in seconds."""

    score_id: int
    entrant_id: int
    kind: str
    speedup: float
    noise_floor: float
    created_at: datetime
    flags: list[str]

    @property
    def resolved(self) -> bool:
        """Whether the measurement tells how fast it is."""
        return ranking.is_resolved(self.flags)

    @property
    def order_key(self) -> float:
        """The earlier one wins a tie."""
        return self.created_at.timestamp()


def due() -> Q:
    """Which cells a reader must not take as they are."""
    return Q(due=True) | ~Q(rules=RULES)


def named(target: str, problem: str, policy: ranking.Policy) -> list[BoardCell]:
    """The cells of a problem on a target that ranks, by slug, at each size, with both of them.

    Of a cell's two long orders only that of the ``policy`` is read, of a problem not its declaration.
    """
    found = BoardCell.objects.select_related("target", "problem").filter(
        target__slug=target,
        target__active=True,
        target__ranked=True,
        problem__slug=problem,
        problem__active=True,
    )
    return list(found.defer("problem__spec", _OTHER[policy]))


_OTHER = {"best": "latest", "latest": "best"}


def fresh(*, problem: Problem, target: Target, size: str, policy: ranking.Policy) -> BoardCell:
    """The cell of one board, current; an empty one where nothing was ever scored."""
    place = {"problem": problem, "target": target, "size": size}
    cell = BoardCell.objects.filter(**place).defer(_OTHER[policy]).first()
    return current(cell) if cell else BoardCell(**place, due=False, rules=RULES)


def current(cell: BoardCell) -> BoardCell:
    """A cell, computed again if it was due."""
    return refresh(cell.pk) if cell.due or cell.rules != RULES else cell


def ensure(wanted: QuerySet[BoardCell]) -> QuerySet[BoardCell]:
    """The same cells, with those that were due computed again."""
    for pk in wanted.filter(due()).order_by("pk").values_list("pk", flat=True):
        refresh(pk)
    return wanted


@transaction.atomic
def refresh(pk: int) -> BoardCell:
    """Compute a cell from the scores and store it.

    The row is locked first: a writer marks it before it commits, so either its change is seen here or its
    mark waits until this is stored, and then stays.
    """
    cell = BoardCell.objects.select_for_update().get(pk=pk)
    here = Score.objects.filter(target=cell.target_id, problem=cell.problem_id, size=cell.size).order_by()
    rows = _standing(here)
    best, latest = ranking.one_per_entrant(rows, "best"), ranking.one_per_entrant(rows, "latest")
    awaiting = here.awaiting().order_by("-speedup", "created_at", "id")
    cell.best, cell.latest = [_line(row) for row in best], [_line(row) for row in latest]
    cell.awaiting = _first_of_each(awaiting.values_list("id", "entrant_id", "entrant__kind"))
    cell.scores = Counter(row.kind for row in rows)
    stale = here.filter(ranked=True).shown().stale()
    cell.stale = dict(stale.values_list("entrant__kind").annotate(scores=Count("id")))
    cell.records = _records(rows)
    cell.leader_id = best[0].score_id if best else None
    cell.entrants, cell.standing, cell.waiting = len(best), len(rows), len(cell.awaiting)
    cell.due, cell.rules = False, RULES
    cell.save()
    return cell


def _standing(here: Any) -> list[Standing]:
    """Everything that stands in a cell, the oldest first."""
    found = here.standing().order_by("created_at", "id")
    columns = ("id", "entrant_id", "entrant__kind", "speedup", "noise_floor", "created_at", "flags")
    return [Standing(*values) for values in found.values_list(*columns)]


def _line(row: Standing) -> list[Any]:
    return [row.score_id, row.speedup, row.noise_floor, row.kind]


def _first_of_each(rows: Iterable[tuple[int, int, str]]) -> list[list[Any]]:
    """[score, kind] of the first row of each entrant."""
    first: dict[int, list[Any]] = {}
    for score_id, entrant_id, kind in rows:
        first.setdefault(entrant_id, [score_id, kind])
    return list(first.values())


def _records(rows: Iterable[Standing]) -> list[list[Any]]:
    """The scores that raised the record, of those whose time was resolved; rows come oldest first."""
    raised: list[list[Any]] = []
    for row in rows:
        if row.resolved and (not raised or row.speedup > raised[-1][1]):
            raised.append([row.score_id, row.speedup, row.created_at.isoformat()])
    return raised


def lines(cell: BoardCell, policy: ranking.Policy, kind: str) -> list[Line]:
    """One line per entrant in board order, of all kinds or of one."""
    stored = cell.best if policy == "best" else cell.latest
    return [Line(*line) for line in stored if not kind or line[3] == kind]


def waiting(cell: BoardCell, kind: str) -> list[int]:
    """Ids of the new bests that wait to be confirmed."""
    return [score_id for score_id, of in cell.awaiting if not kind or of == kind]


def counted(by_kind: dict[str, int], kind: str) -> int:
    """A count of a cell, over all kinds of entrants or of one."""
    return by_kind.get(kind, 0) if kind else sum(by_kind.values())
