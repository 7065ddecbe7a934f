"""The model board: the latest complete run of each model, harness and prompt, in order, page by page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from leaderboard import model_rows, summaries
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
    return sorted(found, key=_ORDERS[filters.sort])


def _asked(target: Target, size: str, filters: Filters) -> QuerySet[RunSummary]:
    rows = summaries.seen().filter(
        target=target, size=size, run__entrant__kind="model", run__verified=filters.verified
    )
    if filters.harness:
        rows = rows.filter(run__harness=filters.harness)
    for field, wanted in (("open_weights", filters.weights), ("reasoning", filters.reasoning)):
        if wanted:
            rows = rows.filter(**{f"run__entrant__{field}": wanted == "yes"})
    return rows.order_by()


def _name(run: Contender) -> tuple[Any, ...]:
    return run.model.lower(), run.harness, run.prompt_variant, run.run_id


_Order = Callable[[Contender], tuple[Any, ...]]


def _falling(value: Callable[[Contender], float]) -> _Order:
    """Order by a value, the highest first; equals by fast_1, pass_1 and name."""
    return lambda run: (-value(run), -run.fast_1, -run.pass_1, *_name(run))


_ORDERS: dict[str, _Order] = {
    "fast_1": _falling(lambda run: run.fast_1),
    "pass_1": _falling(lambda run: run.pass_1),
    "geometric_mean": _falling(lambda run: run.geometric_mean),
    "solved": _falling(lambda run: run.solved),
    "date": _falling(lambda run: run.day.toordinal()),
    "name": _name,
}


def board_page(
    *, target: Target, size: str, filters: Filters, page: int, slugs: Sequence[str] | None = None
) -> Page[Contender]:
    """One page of the board, its rows yet to be read; beyond the last page it is the last."""
    return Paginator(ordered(target=target, size=size, filters=filters, slugs=slugs), PAGE).get_page(page)


def shown(
    page: Page[Contender], ahead: int, slugs: Sequence[str] | None = None
) -> tuple[list[ModelRow], Sequence[Drawn | ModelRow]]:
    """The rows of a page with what the board shows of their figures, and its first runs by place to be drawn.

    All over some problems or the whole track; the drawn ones have their fast_p curves.
    """
    found, first = placed(page), _leaders(page, ahead)
    if slugs is None:
        return model_rows.in_brief(found, first)
    return (
        model_rows.with_figures(found, slugs, bands=False),
        model_rows.with_figures(first, slugs),
    )


def leaders(
    page: Page[Contender], count: int, slugs: Sequence[str] | None = None
) -> Sequence[Drawn | ModelRow]:
    """The first runs by place of the board that a page is of, with their fast_p curves."""
    first = _leaders(page, count)
    return model_rows.in_brief((), first)[1] if slugs is None else model_rows.with_figures(first, slugs)


def _leaders(page: Page[Contender], count: int) -> list[Contender]:
    return sorted(page.paginator.object_list, key=lambda run: -run.fast_1)[:count]


def placed(page: Page[Contender]) -> list[Contender]:
    """The runs of a page with their places: by fast_1, whatever the order shown; equals share a place."""
    values = sorted(run.fast_1 for run in page.paginator.object_list)
    return [
        run._replace(place=1 + len(values) - bisect_right(values, run.fast_1)) for run in page.object_list
    ]


def model_board(
    *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """All rows of the board with all their figures, in the order asked for.

    With ``slugs`` everything is taken over these problems only, and curves carry no bands.
    """
    found = ordered(target=target, size=size, filters=filters, slugs=slugs)
    whole = Paginator(found, max(len(found), 1)).get_page(1)
    return model_rows.with_figures(placed(whole), slugs, bands=False)


def rows_of_runs(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """Runs by id in the order given, whether or not they stand; one without anything there is left out."""
    wanted = summaries.seen().filter(run__in=runs, target=target, size=size).order_by()
    found = sorted(model_rows.contenders(wanted, target), key=lambda run: runs.index(run.run_id))
    return model_rows.with_figures(found, slugs)
