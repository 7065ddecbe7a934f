"""Pages that set models side by side: chosen runs, and where they succeed."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard import (
    asked,
    charts,
    model_board,
    model_page,
    model_rows,
    selectors,
    subset,
    summaries,
)
from leaderboard.model_board import Filters
from leaderboard.taxonomy import taxonomy as divide
from portal.core import query
from portal.submissions.models import ModelRun

IN_TAXONOMY = 12


@query.takes("target", "size", "runs", "run", *subset.PARAMETERS)
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Up to six runs side by side."""
    target, size, targets = asked.place(request.GET)
    runs, part = asked.compared(request.GET, request.user), subset.read(request.GET, options=True)
    filters = Filters(verified=asked.runs_verified(request.GET), sort="name")
    chosen = model_board.rows_of_runs(runs, target=target, size=size, slugs=part.chosen)
    here = [row.run_id for row in chosen]
    standing = model_board.ordered(target=target, size=size, filters=filters, slugs=part.chosen)
    others = set(here) - {run.run_id for run in standing}
    context: dict[str, Any] = {
        "target": target,
        "targets": targets,
        "size": size,
        "sizes": selectors.ranked_sizes(target),
        "subset": part,
        "filters": filters,
        "candidates": [*standing, *(row for row in chosen if row.run_id in others)],
        "chosen": chosen,
        "chosen_ids": here,
        "elsewhere": ModelRun.objects.filter(pk__in=set(runs) - set(here)).select_related("entrant"),
        "limit": model_page.MAX_COMPARED,
        "board_kind": "compare",
    }
    if len(chosen) > 1 and part.chosen != ():
        duels = model_page.duels(
            model_page.outcomes_of(here, target=target, size=size, slugs=part.chosen or summaries.track())
        )
        context |= {
            "fast_p": charts.fast_p(chosen),
            "roof_u": charts.roof_u(chosen),
            "categories": charts.categories(chosen),
            "duels": duels,
            "wins": list(zip(chosen, model_page.wins(duels, len(chosen)), strict=True)),
            "unsolved": sum(1 for duel in duels if duel.winner is None),
        }
    return render(request, "leaderboard/compare.html", context)


@query.takes("target", "size", *subset.PARAMETERS)
@require_safe
def taxonomy(request: HttpRequest) -> HttpResponse:
    """Success by level, bound and parallelism for the first runs of the board."""
    target, size, targets = asked.place(request.GET)
    part = subset.read(request.GET, options=True)
    found = model_board.ordered(target=target, size=size, filters=Filters(), slugs=part.chosen)
    rows = [] if part.chosen == () else model_rows.in_brief(found[:IN_TAXONOMY])[0]
    context = {
        "target": target,
        "targets": targets,
        "size": size,
        "sizes": selectors.ranked_sizes(target),
        "subset": part,
        "tables": divide(rows=rows, target=target, size=size, slugs=part.chosen) if rows else [],
        "board_kind": "taxonomy",
    }
    return render(request, "leaderboard/taxonomy.html", context)
