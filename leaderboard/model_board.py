"""The model board: the latest complete run of each model, harness and prompt, in order, page by page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from leaderboard import model_rows
from leaderboard.model_rows import Contender, Drawn, ModelRow
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
) -> list[Contender]:
    """The latest complete run per model, harness and prompt variant, in the order asked for.

    A verified run with a submission still on its way is not complete: the one before it stands until it is.
    A community run stands from its first result on, and says that it is still running. With ``slugs`` the
    order is that over these problems only. Neither places nor figures are read.
    """
    latest: dict[tuple[int, str, str], Contender] = {}
    for run in model_rows.contenders(_asked(target, size, filters), target):
        if (run.in_progress and filters.verified) or (filters.as_of and run.day > filters.as_of):
            continue
        key = (run.entrant_id, run.harness, run.prompt_variant)
        held = latest.get(key)
        if held is None or (run.day, run.run_id) > (held.day, held.run_id):
            latest[key] = run
    found = list(latest.values())
    if slugs is not None:
        found = model_rows.resorted(found, slugs)
    return sorted(found, key=lambda run: _sort_key(run, filters.sort))


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


def _sort_key(run: Contender, sort: str) -> tuple[Any, ...]:
    name = (run.model.lower(), run.harness, run.prompt_variant, run.run_id)
    if sort == "name":
        return name
    value: float = {
        "pass_1": run.pass_1,
        "geometric_mean": run.geometric_mean,
        "solved": run.solved,
        "date": run.day.toordinal(),
    }.get(sort, run.fast_1)
    return (-value, -run.fast_1, -run.pass_1, *name)


def board_page(
    *, target: Target, size: str, filters: Filters, page: int, slugs: Sequence[str] | None = None
) -> Page[Contender]:
    """One page of the board, its rows yet to be read; beyond the last page it is the last."""
    return Paginator(ordered(target=target, size=size, filters=filters, slugs=slugs), PAGE).get_page(page)


def lines(page: Page[Contender], slugs: Sequence[str] | None = None) -> list[ModelRow]:
    """The rows of a page with what the board shows of their figures, over some problems or the whole track."""
    found = list(page.object_list)
    if slugs is None:
        return placed(model_rows.in_brief(found), page)
    return placed(model_rows.with_figures(found, slugs, bands=False), page)


def leaders(
    page: Page[Contender], count: int, slugs: Sequence[str] | None = None
) -> Sequence[Drawn | ModelRow]:
    """The first runs by place of the board that a page is of, with their fast_p curves."""
    ahead = sorted(page.paginator.object_list, key=lambda run: -run.fast_1)[:count]
    return model_rows.drawn(ahead) if slugs is None else model_rows.with_figures(ahead, slugs)


def placed(rows: Sequence[ModelRow], page: Page[Contender]) -> list[ModelRow]:
    """Rows with their places on the board that a page is of: by fast_1, whatever the order; equals share one."""
    values = sorted(run.fast_1 for run in page.paginator.object_list)
    return [row._replace(place=1 + len(values) - bisect_right(values, row.fast_1)) for row in rows]


def model_board(
    *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """All rows of the board with all their figures, in the order asked for.

    With ``slugs`` everything is taken over these problems only, and curves carry no bands.
    """
    found = ordered(target=target, size=size, filters=filters, slugs=slugs)
    page = Paginator(found, max(len(found), 1)).get_page(1)
    return placed(model_rows.with_figures(found, slugs, bands=False), page)


def rows_of_runs(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """Runs by id in the order given, whether or not they stand; one without anything there is left out."""
    wanted = RunSummary.objects.filter(run__in=runs, target=target, size=size).order_by()
    found = sorted(model_rows.contenders(wanted, target), key=lambda run: runs.index(run.run_id))
    return model_rows.with_figures(found, slugs)
