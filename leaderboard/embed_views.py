"""One chart alone, made to stand in a frame of another site; the same figure as CSV.

Only these pages may be framed. They show public figures, take no session and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from leaderboard import asked, charts, model_board, model_page, model_rows, model_views
from leaderboard.embeds import Embed
from leaderboard.tables import csv_text
from leaderboard.twins import twin
from portal.core import query

_FRAMED = {**settings.CONTENT_SECURITY_POLICY["DIRECTIVES"], "frame-ancestors": ["*"]}


def _framed(make: Callable[..., Embed], *names: str) -> Callable[..., HttpResponseBase]:
    """Turn a maker of one chart, and what it takes, into a page that may be framed, or into CSV (``?as=csv``)."""

    @query.takes(*names, "as")
    @require_safe
    @xframe_options_exempt
    @csp_replace(_FRAMED)
    def view(request: HttpRequest, **path: str) -> HttpResponse:
        as_csv = query.choice(request.GET, "as", ["csv"]) == "csv"
        embed = make(request, **path)
        numbers = twin(embed.figure) if embed.figure else None
        if as_csv:
            if numbers is None:
                raise Http404("There is nothing to draw here yet.")
            rows = [dict(zip(numbers.head, row, strict=True)) for row in numbers.rows]
            answer = HttpResponse(csv_text(numbers.head, rows), content_type="text/csv; charset=utf-8")
            answer["Content-Disposition"] = f'attachment; filename="pkb-{embed.name}.csv"'
            return answer
        parameters = request.GET.copy()
        parameters["as"] = "csv"
        context = {"embed": embed, "numbers": numbers, "csv_url": f"?{parameters.urlencode()}"}
        return render(request, "leaderboard/embed.html", context)

    return view


def _models(request: HttpRequest) -> Embed:
    """The fast_p curves of the model board, with its filters."""
    found = asked.board_of_models(request.GET)
    board, part = found.load(), found.part.chosen
    kind = "community runs" if not found.filters.verified else "verified runs"
    leaders = [] if part == () else model_board.leaders(board, model_views.ON_CHART, part)
    return Embed(
        name="models-fast-p",
        title=f"Models on {found.target.title}, size “{found.size}”, {kind}",
        figure=charts.fast_p(leaders) if leaders else None,
        caption=model_views.caption(len(leaders), board.paginator.count),
        page=f"{reverse('leaderboard:models')}?{_without_as(request)}",
        why_empty=f"No {kind[:-5]} run fits on this target at this size, so there is no curve to draw.",
    )


_MODEL_CHARTS: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "fast-p": (lambda row: charts.fast_p([row], band=True), charts.CAPTIONS["fast_p"]),
    "roof-u": (lambda row: charts.roof_u([row], band=True), charts.CAPTIONS["roof_u"]),
    "categories": (lambda row: charts.categories([row]), charts.CAPTIONS["categories"]),
}


def _model(request: HttpRequest, slug: str, chart: str) -> Embed:
    """A curve of one model's run."""
    if chart not in _MODEL_CHARTS:
        raise Http404(f"A model has no chart of this name; there are {', '.join(_MODEL_CHARTS)}.")
    make, caption = _MODEL_CHARTS[chart]
    entrant = asked.named_entrant(slug, AnonymousUser())
    target, size, _ = asked.place(request.GET, model_page.places_with_runs(entrant))
    run = asked.run_of(request.GET, model_page.runs_of(entrant, target, size))
    row = model_rows.whole([run])[0] if run else None
    standing = "" if row is None or row.verified else ", a community run that nobody has vouched for"
    return Embed(
        name=f"{slug}-{chart}",
        title=f"{entrant.name} on {target.title}, size “{size}”{standing}",
        figure=make(row) if row else None,
        caption=caption,
        page=f"{reverse('leaderboard:model', args=[slug])}?{_without_as(request)}",
        why_empty="Nothing of this model was judged under the full protocol on this target yet.",
    )


def _problem(request: HttpRequest, target: str, problem: str, chart: str) -> Embed:
    """How the record of a problem rose, or how its entrants' speedups are distributed."""
    board = asked.board_of_problem(request.GET, target, problem)
    if chart == "record":
        figure = charts.record_history(board.history) if board.history else None
    elif chart == "spread":
        figure = charts.spread(board.speedups) if board.speedups else None
    else:
        raise Http404("A problem has no chart of this name; there are record, spread.")
    return Embed(
        name=f"{target}-{problem}-{chart}",
        title=f"{board.problem.title} on {board.target.title}, size “{board.size}”",
        figure=figure,
        caption=charts.CAPTIONS[chart],
        page=f"{reverse('leaderboard:problem', args=[target, problem])}?{_without_as(request)}",
        why_empty="No score stands on this board yet, so there is nothing to draw.",
    )


def _without_as(request: HttpRequest) -> str:
    parameters = request.GET.copy()
    parameters.pop("as", None)
    return parameters.urlencode()


models = _framed(_models, "target", "col", *asked.OF_MODELS)
model = _framed(_model, "target", "size", "run")
problem = _framed(_problem, *asked.OF_PROBLEM)
