"""Pages about models: the board, one model, comparisons, published figures."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard import charts, columns, model_board, model_page, selectors
from leaderboard.model_board import Filters, ModelRow
from leaderboard.models import RunSummary
from leaderboard.published import published
from leaderboard.taxonomy import taxonomy as divide
from leaderboard.views import csv_response
from portal.submissions.models import Entrant, ModelRun
from problems.models import Target

ON_CHART = 6
IN_TAXONOMY = 12


def ranked_targets() -> list[Target]:
    """Targets with boards, the official one first."""
    rows = Target.objects.active().filter(ranked=True)
    return sorted(rows, key=lambda row: (not row.spec.get("official"), row.slug))


def _place(request: HttpRequest, fallback: tuple[str, str] | None = None) -> tuple[Target, str]:
    """Target and size of a request; what is not given is taken from where there is something to see."""
    targets = ranked_targets()
    if not targets:
        raise Http404("No target is set up.")
    verified = request.GET.get("runs") != "community"
    asked = request.GET.get("target") or (fallback or _busiest(verified) or (targets[0].slug, ""))[0]
    target = next((row for row in targets if row.slug == asked), None)
    if target is None:
        raise Http404("There is no such target.")
    sizes = selectors.ranked_sizes(target)
    size = request.GET.get("size") or (fallback[1] if fallback and fallback[0] == target.slug else "")
    return target, size if size in sizes else sizes[0]


def _busiest(verified: bool) -> tuple[str, str] | None:
    found = RunSummary.objects.filter(run__verified=verified).order_by("-solved")
    return found.values_list("target__slug", "size").first()


def _filters(request: HttpRequest) -> Filters:
    get = request.GET
    sort = get.get("sort", "")
    try:
        as_of = date.fromisoformat(get["as_of"]) if get.get("as_of") else None
    except ValueError:
        as_of = None
    return Filters(
        verified=get.get("runs") != "community",
        harness=get.get("harness", "") if get.get("harness") in ModelRun.Harness.values else "",
        weights=get.get("weights", ""),
        reasoning=get.get("reasoning", ""),
        as_of=as_of,
        sort=sort if sort in model_board.SORTS else "fast_1",
    )


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """The model board, or that of community runs."""
    target, size = _place(request)
    filters = _filters(request)
    board = model_board.board_page(
        target=target, size=size, filters=filters, page=request.GET.get("page"), leaders=ON_CHART
    )
    shown = columns.chosen(request.GET.getlist("col"))
    context: dict[str, Any] = {
        "target": target,
        "targets": ranked_targets(),
        "size": size,
        "sizes": selectors.ranked_sizes(target),
        "filters": filters,
        "harnesses": ModelRun.Harness.values,
        "rows": board.rows,
        "page": board.page,
        "columns": shown,
        "all_columns": columns.COLUMNS,
        "columns_asked": "col" in request.GET,
        "show": {column.key: True for column in shown},
        "board_kind": "models" if filters.verified else "community",
    }
    if board.rows:
        context |= {
            "track": board.rows[0].figures["track"],
            "figure": charts.fast_p(board.leaders),
            "caption": _caption(len(board.leaders), board.count),
            "csv_url": f"{reverse('leaderboard:models_csv')}?{request.GET.urlencode()}",
        }
    return render(request, "leaderboard/models.html", context)


def _caption(leaders: int, count: int) -> str:
    which = "all runs" if leaders == count else f"the first {leaders} of {count} runs"
    return (
        f"fast_p of {which}: the share of problems solved correctly and more than p times faster than the "
        "reference. At p = 1 it is fast_1; the higher and the further right a line stays, the better."
    )


@require_safe
def models_json(request: HttpRequest) -> HttpResponse:
    """The model board as JSON, a page of it, curves included."""
    target, size = _place(request)
    filters = _filters(request)
    board = model_board.board_page(target=target, size=size, filters=filters, page=request.GET.get("page"))
    text = model_board.document(board, target, size, filters)
    return HttpResponse(text, content_type="application/json")


@require_safe
def models_csv(request: HttpRequest) -> HttpResponse:
    """The model board as CSV, all pages of it."""
    target, size = _place(request)
    rows = model_board.model_board(target=target, size=size, filters=_filters(request))
    flat = [model_board.flat_row(row) for row in rows]
    return csv_response(f"models-{target.slug}-{size}", model_board.CSV_COLUMNS, flat)


@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """One model: a run in depth and all its runs."""
    entrant = get_object_or_404(Entrant, slug=slug)
    where = model_page.places_with_runs(entrant)
    target, size = _place(request, where[0] if where else None)
    found = model_page.runs_of(entrant, target, size)
    context: dict[str, Any] = {
        "entrant": entrant,
        "target": target,
        "size": size,
        "where": where,
        "titles": {row.slug: row.title for row in ranked_targets()},
    }
    if found:
        chosen = next((row for row in found if row.run_slug == request.GET.get("run")), found[0])
        context |= {"runs": found} | _in_depth(chosen, target, size, request.GET.get("page"))
    return render(request, "leaderboard/model.html", context)


@require_safe
def model_json(request: HttpRequest, slug: str) -> JsonResponse:
    """A model's run in depth as JSON, with a line per problem, and the names of its other runs."""
    entrant = get_object_or_404(Entrant, slug=slug)
    where = model_page.places_with_runs(entrant)
    target, size = _place(request, where[0] if where else None)
    found = model_page.runs_of(entrant, target, size)
    document: dict[str, Any] = {"model": entrant.name, "target": target.slug, "size": size, "run": None}
    if found:
        chosen = next((row for row in found if row.run_slug == request.GET.get("run")), found[0])
        lines = model_page.outcomes(run_id=chosen.run_id, target=target, size=size)
        document |= {
            "run": model_board.public_row(chosen) | {"place": None},
            "problems": [asdict(line) for line in lines],
            "runs": [row.run_slug for row in found],
        }
    return JsonResponse(document)


def _in_depth(row: ModelRow, target: Target, size: str, page: str | None) -> dict[str, Any]:
    lines = model_page.outcomes(run_id=row.run_id, target=target, size=size)
    solved = sorted((line for line in lines if line.speedup), key=lambda line: -(line.speedup or 0))
    cells = model_page.heat_cells(run_id=row.run_id, target=target, size=size)
    samples = int(row.figures["n"])
    return {
        "row": row,
        "fast_p": charts.fast_p([row], band=True),
        "roof_u": charts.roof_u([row], band=True),
        "categories": charts.categories([row]),
        "heat": charts.heat_map([line.problem for line in lines], samples, cells) if cells else None,
        "climb": charts.climb([row]) if row.figures["climb"] else None,
        "best": solved[:5],
        "worst": solved[-5:][::-1] if len(solved) > 5 else [],
        "page": Paginator(lines, selectors.PAGE).get_page(page),
        "paged": page is not None,
    }


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Up to six runs side by side."""
    target, size = _place(request)
    candidates = model_board.model_board(
        target=target,
        size=size,
        filters=Filters(verified=request.GET.get("runs") != "community", sort="name"),
    )
    asked = [int(word) for word in request.GET.getlist("run") if word.isdigit()][: model_page.MAX_COMPARED]
    chosen = [row for run_id in dict.fromkeys(asked) for row in candidates if row.run_id == run_id]
    context: dict[str, Any] = {
        "target": target,
        "targets": ranked_targets(),
        "size": size,
        "sizes": selectors.ranked_sizes(target),
        "candidates": candidates,
        "chosen": chosen,
        "chosen_ids": [row.run_id for row in chosen],
        "limit": model_page.MAX_COMPARED,
        "board_kind": "compare",
    }
    if len(chosen) > 1:
        runs = [row.run_id for row in chosen]
        duels = model_page.duels(model_page.outcomes_of(runs, target=target, size=size))
        context |= {
            "fast_p": charts.fast_p(chosen),
            "roof_u": charts.roof_u(chosen),
            "categories": charts.categories(chosen),
            "duels": duels,
            "wins": list(zip(chosen, model_page.wins(duels, len(chosen)), strict=True)),
            "unsolved": sum(1 for duel in duels if duel.winner is None),
        }
    return render(request, "leaderboard/compare.html", context)


@require_safe
def taxonomy(request: HttpRequest) -> HttpResponse:
    """Success by level, bound and parallelism for the first runs of the board."""
    target, size = _place(request)
    rows = model_board.model_board(target=target, size=size, filters=Filters())[:IN_TAXONOMY]
    context = {
        "target": target,
        "targets": ranked_targets(),
        "size": size,
        "sizes": selectors.ranked_sizes(target),
        "tables": divide(rows=rows, target=target, size=size) if rows else [],
        "board_kind": "taxonomy",
    }
    return render(request, "leaderboard/taxonomy.html", context)


@require_safe
def published_figures(request: HttpRequest) -> HttpResponse:
    """What the paper published, marked as published."""
    return render(
        request, "leaderboard/published.html", {"published": published(), "board_kind": "published"}
    )
