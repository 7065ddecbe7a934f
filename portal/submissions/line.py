"""The line before a target's hosts: lanes first, then turn about among the authors, as hosts take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby, zip_longest
from uuid import UUID

from portal.submissions import serving
from portal.submissions.models import Submission


def order_of_service(
    waiting: Iterable[tuple[int, int, UUID]], served_at: Mapping[int, datetime]
) -> list[UUID]:
    """Return what waits in the order in which hosts take it, if nobody joins and no host fails.

    `waiting` holds (lane, author, id), by lane, then time; `served_at` holds each author's last turn. In a lane goes
    first who had no turn yet, then whose last turn is longest ago. A turn makes it the latest, so turns go round.
    """
    last = {author: (1, at.timestamp()) for author, at in served_at.items()}
    order: list[UUID] = []
    for _, lane in groupby(waiting, key=lambda row: row[0]):
        lines: dict[int, list[UUID]] = {}
        for _, author, pk in lane:
            lines.setdefault(author, []).append(pk)
        authors = sorted(lines, key=lambda author: last.get(author, (0, 0.0)))
        for turn in zip_longest(*(lines[author] for author in authors)):
            for author, pk in zip(authors, turn, strict=True):
                if pk is not None:
                    order.append(pk)
                    last[author] = (2, len(order))
    return order


def line_of(target_id: int) -> list[UUID]:
    """Return all that waits for a target, the next first."""
    waiting = Submission.objects.in_line().filter(target_id=target_id)
    return order_of_service(waiting.values_list("lane", "author_id", "id"), serving.served_at(target_id))


def place_of(submission: Submission) -> int | None:
    """Return the place in the line, 1 = next; None for what does not wait."""
    line = line_of(submission.target_id)
    return line.index(submission.pk) + 1 if submission.pk in line else None
