"""Pages about models: the board, one model, comparisons, published figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard import charts, columns, model_board, model_page, selectors, subset
from leaderboard.model_board import Filters, ModelRow
from leaderboard.models import RunSummary
from leaderboard.published import published
from leaderboard.taxonomy import taxonomy as divide
from leaderboard.views import csv_response
from portal.submissions.models import Entrant, ModelRun
from problems.models import Target

ON_CHART = 6
IN_TAXONOMY = 12


class NoTargets(Http404):
    """Nothing was set up yet, so there is no board at all."""


def ranked_targets() -> list[Target]:
    """Targets with boards, the official one first."""
    rows = Target.objects.active().filter(ranked=True)
    return sorted(rows, key=lambda row: (not row.spec.get("official"), row.slug))


def place(request: HttpRequest, where: Sequence[tuple[str, str]] = ()) -> tuple[Target, str]:
    """Target and size of a request; what is not given is taken from where there is something to see.

    ``where`` lists (target, size) pairs that have something, the richest first.
    """
    fallback = where[0] if where else None
    targets = ranked_targets()
    if not targets:
        raise NoTargets("No target is set up.")
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


@dataclass(frozen=True, slots=True)
class Asked:
    """The page of the model board that a request asks for. ``rows`` is empty where no problem was left."""

    target: Target
    size: str
    filters: Filters
    part: subset.Subset
    board: model_board.BoardPage

    @property
    def rows(self) -> list[ModelRow]:
        """The rows to show."""
        return self.board.rows if self.part.chosen != () else []


def asked_board(request: HttpRequest, *, options: bool = False) -> Asked:
    """Read a request's target, size, filters, problems and page; with what may be asked if wanted."""
    target, size = place(request)
    filters, part = _filters(request), subset.read(request.GET, options=options)
    board = model_board.board_page(
        target=target,
        size=size,
        filters=filters,
        page=request.GET.get("page"),
        leaders=ON_CHART,
        slugs=part.chosen,
    )
    return Asked(target, size, filters, part, board)


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """The model board, or that of community runs."""
    try:
        found = asked_board(request, options=True)
    except NoTargets:
        return render(request, "leaderboard/index.html", {"targets": [], "board_kind": "models"})
    shown = columns.chosen(request.GET.getlist("col"))
    context: dict[str, Any] = {
        "target": found.target,
        "targets": ranked_targets(),
        "size": found.size,
        "sizes": selectors.ranked_sizes(found.target),
        "filters": found.filters,
        "harnesses": ModelRun.Harness.values,
        "rows": found.rows,
        "page": found.board.page,
        "subset": found.part,
        "columns": shown,
        "all_columns": columns.COLUMNS,
        "columns_asked": "col" in request.GET,
        "show": {column.key: True for column in shown},
        "board_kind": "models" if found.filters.verified else "community",
    }
    if found.rows:
        context |= {
            "track": found.rows[0].figures["track"],
            "figure": charts.fast_p(found.board.leaders),
            "caption": caption(len(found.board.leaders), found.board.count),
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


@require_safe
def models_json(request: HttpRequest) -> HttpResponse:
    """The model board as JSON, a page of it, curves included."""
    target, size = place(request)
    filters = _filters(request)
    part = subset.read(request.GET)
    board = model_board.board_page(
        target=target, size=size, filters=filters, page=request.GET.get("page"), slugs=part.chosen
    )
    text = model_board.document(board, target, size, filters)
    return HttpResponse(text, content_type="application/json")


@require_safe
def models_csv(request: HttpRequest) -> HttpResponse:
    """The model board as CSV, all pages of it."""
    target, size = place(request)
    part = subset.read(request.GET)
    rows = model_board.model_board(target=target, size=size, filters=_filters(request), slugs=part.chosen)
    flat = [model_board.flat_row(row) for row in rows]
    return csv_response(f"models-{target.slug}-{size}", model_board.CSV_COLUMNS, flat)


def chosen_run(request: HttpRequest, found: Sequence[ModelRow]) -> ModelRow:
    """The run asked for, else the newest; there must be one."""
    return next((row for row in found if row.run_slug == request.GET.get("run")), found[0])


@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """One model: a run in depth and all its runs."""
    entrant = get_object_or_404(Entrant, slug=slug)
    where = model_page.places_with_runs(entrant)
    target, size = place(request, where)
    found = model_page.runs_of(entrant, target, size)
    context: dict[str, Any] = {
        "entrant": entrant,
        "target": target,
        "size": size,
        "where": where,
        "titles": {row.slug: row.title for row in ranked_targets()},
    }
    if found:
        chosen = chosen_run(request, found)
        context |= {"runs": found, "over_time": charts.runs(found) if len(found) > 1 else None}
        context |= _in_depth(chosen, target, size, request.GET.get("page"))
    return render(request, "leaderboard/model.html", context)


@require_safe
def model_json(request: HttpRequest, slug: str) -> JsonResponse:
    """A model's run in depth as JSON, with a line per problem, and the names of its other runs."""
    entrant = get_object_or_404(Entrant, slug=slug)
    where = model_page.places_with_runs(entrant)
    target, size = place(request, where)
    found = model_page.runs_of(entrant, target, size)
    document: dict[str, Any] = {"model": entrant.name, "target": target.slug, "size": size, "run": None}
    if found:
        chosen = chosen_run(request, found)
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
        "words": charts.CATEGORY_WORDS,
        "captions": charts.CAPTIONS,
        "embed_query": f"?run={row.run_slug}&target={target.slug}&size={size}",
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
    target, size = place(request)
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
    target, size = place(request)
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
