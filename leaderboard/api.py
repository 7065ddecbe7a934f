"""API of the boards: open to everybody, read only, the same rows as the pages."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from leaderboard import model_board, selectors, subset
from leaderboard.import_views import document
from leaderboard.model_board import Filters
from leaderboard.models import ImportedResult
from leaderboard.page_cache import kept_document
from leaderboard.views import KINDS, board_document
from portal.core.errors import InvalidInput, NotFound
from portal.core.views import ApiView
from portal.submissions.models import ModelRun
from problems.models import Problem, Target


def _parameter(name: str, description: str, values: list[str] | None = None) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, description=description, enum=values)


PAGE = OpenApiParameter("page", OpenApiTypes.INT, description="Page of 50 rows, from 1.")
SIZE = _parameter("size", "Size of the inputs; default: the target's first ranked size.")
MODEL_PARAMETERS = [
    SIZE,
    _parameter("runs", "`community` for runs that nobody vouched for.", ["verified", "community"]),
    _parameter("harness", "Only runs made in this way.", ModelRun.Harness.values),
    _parameter("weights", "Open weights or not.", ["yes", "no"]),
    _parameter("reasoning", "Reasoning models or not.", ["yes", "no"]),
    OpenApiParameter("as_of", OpenApiTypes.DATE, description="The board as of this day, by the runs' dates."),
    _parameter("sort", "Order of the rows.", list(model_board.SORTS)),
    _parameter("level", "Only problems of this level; figures are taken over them alone."),
    _parameter("domain", "Only problems of this domain."),
    _parameter("parallelism", "Only problems with this kind of parallelism."),
    _parameter("problems", "Only these: slugs, numbers and ranges of numbers, with commas."),
    PAGE,
]
BOARD_PARAMETERS = [
    SIZE,
    _parameter("policy", "Which score of each entrant.", ["best", "latest"]),
    _parameter("kind", "Only entrants of this kind.", [kind for kind in KINDS if kind]),
    PAGE,
]


def _choice(request: Request, name: str, values: Any, default: str = "") -> str:
    """A query parameter that must be one of some values; InvalidInput names them otherwise."""
    given = request.query_params.get(name, "") or default
    if given != default and given not in values:
        raise InvalidInput(
            f"{name}.unknown", f"{given[:40]!r} is none of: {', '.join(values)}.", field=name, status=400
        )
    return given


def _target(slug: str) -> Target:
    found = Target.objects.active().filter(ranked=True, slug=slug).first()
    if found is None:
        raise NotFound("target.not_found", f"There is no board for a target {slug[:80]!r}.")
    return found


def _size(request: Request, target: Target) -> str:
    sizes = selectors.ranked_sizes(target)
    return _choice(request, "size", sizes, sizes[0])


class ModelBoard(ApiView):
    """Runs of models with all their figures, curves included."""

    @extend_schema(
        operation_id="leaderboards_models", parameters=MODEL_PARAMETERS, responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str) -> HttpResponse:
        """The model board of a target."""
        return kept_document(request, lambda: _model_board(request, target))


def _model_board(request: Request, slug: str) -> str:
    target = _target(slug)
    size = _size(request, target)
    filters = Filters(
        verified=_choice(request, "runs", ["verified", "community"], "verified") == "verified",
        harness=_choice(request, "harness", ModelRun.Harness.values),
        weights=_choice(request, "weights", ["yes", "no"]),
        reasoning=_choice(request, "reasoning", ["yes", "no"]),
        as_of=_day(request),
        sort=_choice(request, "sort", list(model_board.SORTS), "fast_1"),
    )
    part = subset.read(request.query_params)
    if part.unknown:
        raise InvalidInput(
            "problems.unknown", f"There is no problem {part.unknown[0]!r}.", field="problems", status=400
        )
    page = request.query_params.get("page")
    board = model_board.board_page(target=target, size=size, filters=filters, page=page, slugs=part.chosen)
    return model_board.document(board, target, size, filters)


def _day(request: Request) -> date | None:
    text = request.query_params.get("as_of", "")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInput(
            "as_of.invalid", "Give the day as YYYY-MM-DD.", field="as_of", status=400
        ) from None


class ImportedResults(ApiView):
    """Results of our harness that were made elsewhere and not re-run here."""

    @extend_schema(
        operation_id="leaderboards_imported", parameters=[PAGE], responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str) -> HttpResponse:
        """What was imported for a target; none of it holds a place."""
        return kept_document(request, lambda: _imported(request, target))


def _imported(request: Request, slug: str) -> dict[str, Any]:
    target = Target.objects.active().filter(slug=slug).first()
    if target is None:
        raise NotFound("target.not_found", f"There is no target {slug[:80]!r}.")
    found = ImportedResult.objects.filter(target=target).order_by("problem__number", "size", "pk")
    page = Paginator(found, selectors.PAGE).get_page(request.query_params.get("page"))
    return {"target": target.slug} | document(page)


class ProblemBoard(ApiView):
    """The board of one problem."""

    @extend_schema(
        operation_id="leaderboards_problem", parameters=BOARD_PARAMETERS, responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str, problem: str) -> HttpResponse:
        """One row per entrant, ranked."""
        return kept_document(request, lambda: _problem_board(request, target, problem))


def _problem_board(request: Request, slug: str, of: str) -> dict[str, Any]:
    target = _target(slug)
    problem = Problem.objects.active().defer("spec").filter(slug=of).first()
    if problem is None:
        raise NotFound("problem.not_found", f"There is no problem {of[:80]!r}.")
    policy: Any = _choice(request, "policy", ["best", "latest"], "best")
    kind: Any = _choice(request, "kind", list(KINDS))
    board = selectors.problem_board(
        problem=problem,
        target=target,
        size=_size(request, target),
        policy=policy,
        kind=kind,
        page=request.query_params.get("page"),
    )
    return board_document(board)
