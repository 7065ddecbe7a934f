"""Pages about models: the board, one model, published figures."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard import (
    asked,
    charts,
    columns,
    figure_cells,
    model_board,
    model_page,
    model_rows,
    model_twins,
    selectors,
)
from leaderboard.model_rows import ModelRow
from leaderboard.published import published
from leaderboard.views import csv_response
from portal.core import query
from portal.submissions.models import ModelRun
from problems.models import Target

ON_CHART = 6


@query.takes("target", "col", *asked.OF_MODELS)
@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """The model board, or that of community runs."""
    try:
        wanted = asked.board_of_models(request.GET, options=True)
    except asked.NoTargets:
        return render(request, "leaderboard/index.html", {"targets": [], "board_kind": "models"})
    page, part = wanted.load(), wanted.part.chosen
    rows, leaders = ([], []) if part == () else model_board.shown(page, ON_CHART, part)
    context: dict[str, Any] = {
        "target": wanted.target,
        "targets": wanted.targets,
        "size": wanted.size,
        "sizes": selectors.ranked_sizes(wanted.target),
        "filters": wanted.filters,
        "harnesses": ModelRun.Harness.values,
        "rows": rows,
        "page": page,
        "subset": wanted.part,
        "columns": wanted.columns,
        "all_columns": columns.COLUMNS,
        "columns_asked": wanted.columns_asked,
        "board_kind": "models" if wanted.filters.verified else "community",
    }
    if rows:
        context |= {
            "track": figure_cells.track_of(rows[0].cells),
            "figure": charts.fast_p(leaders),
            "caption": caption(len(leaders), page.paginator.count),
            "embed_url": f"{reverse('embed:models')}?{_kept(request)}",
        }
    return render(request, "leaderboard/models.html", context)


def _kept(request: HttpRequest) -> str:
    """The request's parameters without what concerns the table alone."""
    query = request.GET.copy()
    for name in ("col", "page", "sort"):
        query.pop(name, None)
    return query.urlencode()


def caption(leaders: int, count: int) -> str:
    which = "all runs" if leaders == count else f"the first {leaders} of {count} runs"
    return (
        f"fast_p of {which}: the share of problems solved correctly and more than p times faster than the "
        "reference. At p = 1 it is fast_1; the higher and the further right a line stays, the better."
    )


@query.takes("target", "col", *asked.OF_MODELS)
@require_safe
def models_json(request: HttpRequest) -> HttpResponse:
    """The model board as JSON, a page of it, curves included."""
    wanted = asked.board_of_models(request.GET)
    text = model_twins.document(wanted.load(), wanted.target, wanted.size, wanted.filters, wanted.part.chosen)
    return HttpResponse(text, content_type="application/json")


@query.takes("target", "col", *asked.OF_MODELS)
@require_safe
def models_csv(request: HttpRequest) -> HttpResponse:
    """The model board as CSV, all pages of it."""
    wanted = asked.board_of_models(request.GET)
    rows = model_board.model_board(
        target=wanted.target, size=wanted.size, filters=wanted.filters, slugs=wanted.part.chosen
    )
    flat = [model_twins.flat_row(row) for row in rows]
    return csv_response(f"models-{wanted.target.slug}-{wanted.size}", model_twins.CSV_COLUMNS, flat)


@query.takes("target", "size", "run", "page")
@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """One model: a run in depth and all its runs."""
    entrant = asked.named_entrant(slug, request.user)
    where = model_page.places_with_runs(entrant)
    target, size, targets = asked.place(request.GET, where)
    found = model_page.runs_of(entrant, target, size)
    chosen, page = asked.run_of(request.GET, found), query.page_number(request.GET)
    context: dict[str, Any] = {
        "entrant": entrant,
        "target": target,
        "size": size,
        "where": where,
        "titles": {row.slug: row.title for row in targets},
    }
    if chosen:
        over_time = charts.runs(model_rows.whole(found)) if len(found) > 1 else None
        context |= {"runs": found, "over_time": over_time, "paged": "page" in request.GET}
        context |= _in_depth(chosen, target, size, page)
    return render(request, "leaderboard/model.html", context)


@query.takes("target", "size", "run")
@require_safe
def model_json(request: HttpRequest, slug: str) -> JsonResponse:
    """A model's run in depth as JSON, with a line per problem, and the names of its other runs."""
    entrant = asked.named_entrant(slug, request.user)
    target, size, _ = asked.place(request.GET, model_page.places_with_runs(entrant))
    found = model_page.runs_of(entrant, target, size)
    chosen = asked.run_of(request.GET, found)
    document: dict[str, Any] = {"model": entrant.name, "target": target.slug, "size": size, "run": None}
    if chosen:
        depth = model_page.in_depth(chosen)
        document |= {
            "run": model_twins.public_row(depth.row) | {"place": None},
            "problems": [line._asdict() for line in depth.lines],
            "runs": [one.run_slug for one in found],
        }
    return JsonResponse(document)


def _in_depth(run: ModelRow, target: Target, size: str, page: int) -> dict[str, Any]:
    depth = model_page.in_depth(run)
    row = depth.row
    solved = sorted((line for line in depth.lines if line.speedup), key=lambda line: -(line.speedup or 0))
    slugs = [line.problem for line in depth.lines]
    return {
        "row": row,
        "captions": charts.CAPTIONS,
        "embed_query": f"?run={row.run_slug}&target={target.slug}&size={size}",
        "fast_p": charts.fast_p([row], band=True),
        "roof_u": charts.roof_u([row], band=True),
        "categories": charts.categories([row]),
        "heat": charts.heat_map(slugs, row.samples, depth.cells) if depth.cells else None,
        "climb": charts.climb([row]) if row.figures["climb"] else None,
        "best": solved[:5],
        "worst": solved[-5:][::-1] if len(solved) > 5 else [],
        "page": Paginator(depth.lines, selectors.PAGE).get_page(page),
    }


@require_safe
def published_figures(request: HttpRequest) -> HttpResponse:
    """What the paper published, marked as published."""
    return render(
        request, "leaderboard/published.html", {"published": published(), "board_kind": "published"}
    )
