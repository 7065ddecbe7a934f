"""API of the boards: open to everybody, read only, the same rows as the pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from leaderboard import asked, imports, model_board, model_twins, selectors
from leaderboard.import_views import document
from leaderboard.models import ImportedResult
from leaderboard.views import board_document
from portal.core import query
from portal.core.errors import NotFound
from portal.core.views import ApiView
from portal.submissions.models import ModelRun
from problems.models import Target


def _parameter(name: str, description: str, values: list[str] | None = None) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, description=description, enum=values)


PAGE = OpenApiParameter("page", OpenApiTypes.INT, description="Page of 50 rows, from 1.")
SIZE = _parameter("size", "Size of the inputs; default: the target's first ranked size.")
MODEL_PARAMETERS = [
    SIZE,
    _parameter("runs", "`community` for runs that nobody vouched for.", list(asked.RUNS)),
    _parameter("harness", "Only runs made in this way.", ModelRun.Harness.values),
    _parameter("weights", "Open weights or not.", list(asked.YES_NO)),
    _parameter("reasoning", "Reasoning models or not.", list(asked.YES_NO)),
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
    _parameter("policy", "Which score of each entrant.", list(asked.POLICIES)),
    _parameter("kind", "Only entrants of this kind.", [kind for kind in asked.KINDS if kind]),
    PAGE,
]


def _names(parameters: list[OpenApiParameter]) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in parameters)


class ModelBoard(ApiView):
    """Runs of models with all their figures, curves included."""

    takes = _names(MODEL_PARAMETERS)

    @extend_schema(
        operation_id="leaderboards_models", parameters=MODEL_PARAMETERS, responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str) -> HttpResponse:
        """The model board of a target."""
        return HttpResponse(_model_board(request, target), content_type="application/json")


def _model_board(request: Request, slug: str) -> str:
    wanted = asked.board_of_models(request.query_params, of=asked.named_target(slug))
    return model_twins.document(wanted.load(), wanted.target, wanted.size, wanted.filters, wanted.part.chosen)


class ImportedResults(ApiView):
    """Results of our harness that were made elsewhere and not re-run here."""

    takes = _names([PAGE])

    @extend_schema(
        operation_id="leaderboards_imported", parameters=[PAGE], responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str) -> HttpResponse:
        """What was imported for a target; none of it holds a place."""
        return JsonResponse(_imported(request, target))


def _imported(request: Request, slug: str) -> dict[str, Any]:
    target = Target.objects.active().filter(slug=slug).first()
    if target is None:
        raise NotFound("target.not_found", f"There is no target {slug[:80]!r}.")
    found = ImportedResult.objects.filter(target=target).order_by("problem__number", "size", *imports.ORDER)
    return {"target": target.slug} | document(query.page_of(found, selectors.PAGE, request.query_params))


class ProblemBoard(ApiView):
    """The board of one problem."""

    takes = _names(BOARD_PARAMETERS)

    @extend_schema(
        operation_id="leaderboards_problem", parameters=BOARD_PARAMETERS, responses={200: OpenApiTypes.OBJECT}
    )
    def get(self, request: Request, target: str, problem: str) -> HttpResponse:
        """One row per entrant, ranked."""
        return JsonResponse(_problem_board(request, target, problem))


def _problem_board(request: Request, target: str, problem: str) -> dict[str, Any]:
    return board_document(asked.board_of_problem(request.query_params, target, problem))
