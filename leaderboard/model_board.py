"""The model board: the latest complete run of each model, harness and prompt, in order, page by page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from leaderboard import model_rows, summaries
from leaderboard.model_rows import ModelRow
from leaderboard.models import RunSummary
from problems.models import Target

PAGE = 50
SORTS = {
    "fast_1": "faster than the reference",
    "pass_1": "correct",
    "geometric_mean": "geometric-mean speedup",
    "solved": "problems solved",
    "date": "date",
    "name": "name",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reader asked the model board for; empty means everything."""

    verified: bool = True
    harness: str = ""
    weights: str = ""
    reasoning: str = ""
    as_of: date | None = None
    sort: str = "fast_1"


def ordered(
    *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """The latest complete run per model, harness and prompt variant, in the order asked for.

    A verified run with a submission still on its way is not complete: the one before it stands until it is.
    A community run stands from its first result on, and says that it is still running. With ``slugs`` the
    order is that over these problems only. Neither places nor figures are read.
    """
    waits = set(summaries.on_their_way().filter(target=target).values_list("run_id", flat=True))
    latest: dict[tuple[int, str, str], ModelRow] = {}
    for row in model_rows.read(_asked(target, size, filters)):
        if row.run_id in waits:
            row = row._replace(in_progress=True)
        if (row.in_progress and filters.verified) or (filters.as_of and row.day > filters.as_of):
            continue
        key = (row.entrant_id, row.harness, row.prompt_variant)
        held = latest.get(key)
        if held is None or (row.day, row.run_id) > (held.day, held.run_id):
            latest[key] = row
    found = list(latest.values())
    if slugs is not None:
        found = model_rows.resorted(found, slugs)
    return sorted(found, key=lambda row: _sort_key(row, filters.sort))


def _asked(target: Target, size: str, filters: Filters) -> QuerySet[RunSummary]:
    rows = RunSummary.objects.filter(
        target=target, size=size, run__entrant__kind="model", run__verified=filters.verified
    )
    if filters.harness:
        rows = rows.filter(run__harness=filters.harness)
    for field, wanted in (("open_weights", filters.weights), ("reasoning", filters.reasoning)):
        if wanted:
            rows = rows.filter(**{f"run__entrant__{field}": wanted == "yes"})
    return rows.order_by()


def _placed(rows: Sequence[ModelRow], board: Sequence[ModelRow]) -> list[ModelRow]:
    """Some rows of a board with their places: by fast_1, whatever the order shown; equals share a place."""
    values = sorted(row.fast_1 for row in board)
    return [row._replace(place=1 + len(values) - bisect_right(values, row.fast_1)) for row in rows]


def _sort_key(row: ModelRow, sort: str) -> tuple[Any, ...]:
    name = (row.model.lower(), row.harness, row.prompt_variant, row.run_id)
    if sort == "name":
        return name
    value: float = {
        "pass_1": row.pass_1,
        "geometric_mean": row.geometric_mean,
        "solved": row.solved,
        "date": row.day.toordinal(),
    }.get(sort, row.fast_1)
    return (-value, -row.fast_1, -row.pass_1, *name)


def board_page(
    *, target: Target, size: str, filters: Filters, page: int, slugs: Sequence[str] | None = None
) -> Page[ModelRow]:
    """One page of the board, without figures; beyond the last page it is the last."""
    return Paginator(ordered(target=target, size=size, filters=filters, slugs=slugs), PAGE).get_page(page)


def lines(page: Page[ModelRow], slugs: Sequence[str] | None = None) -> list[ModelRow]:
    """The rows of a page with what the board shows of their figures, over some problems or the whole track."""
    rows = placed(page)
    return model_rows.in_brief(rows) if slugs is None else model_rows.whole(rows, slugs, bands=False)


def placed(page: Page[ModelRow]) -> list[ModelRow]:
    """The rows of a page with their places."""
    return _placed(list(page.object_list), list(page.paginator.object_list))


def leaders(page: Page[ModelRow], count: int, slugs: Sequence[str] | None = None) -> list[ModelRow]:
    """The first runs by place of the board that a page is of, with their fast_p curves."""
    ahead = sorted(page.paginator.object_list, key=lambda row: -row.fast_1)[:count]
    return model_rows.with_curves(ahead) if slugs is None else model_rows.whole(ahead, slugs)


def model_board(
    *,
    target: Target,
    size: str,
    filters: Filters,
    slugs: Sequence[str] | None = None,
) -> list[ModelRow]:
    """All rows of the board with all their figures, in the order asked for.

    With ``slugs`` everything is taken over these problems only, and curves carry no bands.
    """
    found = ordered(target=target, size=size, filters=filters, slugs=slugs)
    return model_rows.whole(_placed(found, found), slugs, bands=False)


def rows_of_runs(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """Runs by id in the order given, whether or not they stand; one without anything there is left out."""
    found = model_rows.read(RunSummary.objects.filter(run__in=runs, target=target, size=size).order_by())
    return model_rows.whole(sorted(found, key=lambda row: runs.index(row.run_id)), slugs)
