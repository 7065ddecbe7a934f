"""Records over all problems of a target, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard import cells
from leaderboard.models import BoardCell, Score
from problems.models import Target

LATEST = 50


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A score that raised the best speedup of its problem."""

    at: datetime
    problem: str
    title: str
    size: str
    entrant: str
    speedup: float
    before: float | None
    submission_id: str


def latest_records(*, target: Target, limit: int = LATEST) -> list[NewRecord]:
    """The newest records of a target, over all problems and sizes."""
    here = cells.ensure(BoardCell.objects.filter(target=target, problem__active=True))
    raised: list[tuple[datetime, int, float | None]] = []
    for stored in here.order_by().values_list("records", flat=True):
        marks = [cells.Mark(*mark) for mark in stored]
        before = [None, *(mark.speedup for mark in marks)]
        raised += [
            (datetime.fromisoformat(mark.at), mark.score_id, best)
            for mark, best in zip(marks, before, strict=False)
        ]
    newest = sorted(raised, reverse=True, key=lambda one: one[:2])[:limit]
    return _named({score_id: best for _, score_id, best in newest})


def _named(before: dict[int, float | None]) -> list[NewRecord]:
    """Records with their names, newest first, by id of the score; ``before`` is the best until then."""
    columns = (
        "id", "created_at", "problem__slug", "problem__title", "size", "entrant__name", "speedup",
        "submission_id",
    )  # fmt: skip
    rows = Score.objects.standing().filter(pk__in=before).order_by("-created_at", "-id")
    return [
        NewRecord(at, slug, title, size, entrant, speedup, before[pk], str(submission))
        for pk, at, slug, title, size, entrant, speedup, submission in rows.values_list(*columns)
        if speedup is not None
    ]
