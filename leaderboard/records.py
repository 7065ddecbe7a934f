"""Records over all problems of a target, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Max, Q, RowRange, Window

from leaderboard.models import Score
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
    before = Window(
        Max("speedup"),
        partition_by=[F("problem"), F("size")],
        order_by=[F("created_at").asc(), F("id").asc()],
        frame=RowRange(start=None, end=-1),
    )
    rows = (
        Score.objects.standing()
        .filter(target=target)
        .annotate(before=before)
        .filter(Q(before=None) | Q(speedup__gt=F("before")))
        .order_by("-created_at", "-id")
        .values_list(
            "created_at", "problem__slug", "problem__title", "size", "entrant__name", "speedup", "before",
            "submission_id",
        )[:limit]
    )  # fmt: skip
    return [
        NewRecord(at, slug, title, size, entrant, speedup, best, str(submission))
        for at, slug, title, size, entrant, speedup, best, submission in rows
        if speedup is not None
    ]
