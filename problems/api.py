"""API of the catalogue: open to everybody, read only."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.errors import InvalidInput, NotFound
from portal.core.views import ApiView
from problems import selectors
from problems.filters import ProblemFilter
from problems.models import Problem, Target
from problems.prompts import VARIANTS
from problems.serializers import (
    ProblemDetailSerializer,
    ProblemSerializer,
    PromptSerializer,
    TargetSerializer,
)


class ByNumber(CursorPagination):
    """Pages of the catalogue."""

    page_size = 200
    ordering = "number"


def find_problem(slug: str) -> Problem:
    """Return an active problem by slug or number, or raise NotFound."""
    active = Problem.objects.active()
    found = active.filter(slug=slug).first()
    if found is None and slug.isascii() and slug.isdigit() and len(slug) < 5:
        found = active.filter(number=int(slug)).first()
    if found is None:
        raise NotFound("problem.not_found", f"There is no problem {slug[:80]!r}.")
    return found


class ProblemList(ApiView):
    """The catalogue."""

    serializer_class = ProblemSerializer
    pagination_class: Any = ByNumber
    filterset_class = ProblemFilter
    queryset = Problem.objects.active()

    @extend_schema(operation_id="problems_list")
    def get(self, request: Request) -> Response:
        """List problems by number."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(ProblemSerializer(page, many=True).data)


class ProblemDetail(ApiView):
    """One problem."""

    serializer_class = ProblemDetailSerializer
    queryset = Problem.objects.active()

    @extend_schema(operation_id="problems_retrieve")
    def get(self, request: Request, slug: str) -> Response:
        """Give the whole declaration: arguments, outputs, sizes, phases, reference."""
        return Response(ProblemDetailSerializer(find_problem(slug)).data)


class ProblemPrompt(ApiView):
    """The prompt of a problem."""

    serializer_class = PromptSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "target", OpenApiTypes.STR, description="Slug of the target; the official one else."
            ),
            OpenApiParameter("variant", OpenApiTypes.STR, enum=VARIANTS),
            OpenApiParameter("as", OpenApiTypes.STR, enum=["json", "text"]),
        ],
        responses={200: PromptSerializer},
    )
    def get(self, request: Request, slug: str) -> HttpResponse | Response:
        """Give the prompt as JSON, or as plain text with `?as=text`. The hash is that of the text."""
        problem = find_problem(slug)
        target = request.query_params.get("target", "")
        variant = request.query_params.get("variant", VARIANTS[0])
        prompt = selectors.prompt_of(problem, target=target, variant=variant)
        if prompt is None:
            field = "variant" if variant not in VARIANTS else "target"
            raise InvalidInput(
                f"{field}.unknown", f"Unknown {field}. Variants: {', '.join(VARIANTS)}.", field=field
            )
        if request.query_params.get("as") == "text":
            answer = HttpResponse(prompt.text, content_type="text/plain; charset=utf-8")
            answer["X-Prompt-Sha256"] = prompt.sha256
            return answer
        return Response(PromptSerializer(prompt).data)


class TargetList(ApiView):
    """The hardware that scores are comparable on."""

    serializer_class = TargetSerializer
    queryset = Target.objects.active()

    @extend_schema(operation_id="targets_list", responses={200: TargetSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """List targets."""
        return Response(TargetSerializer(Target.objects.active(), many=True).data)


class TargetDetail(ApiView):
    """One target."""

    serializer_class = TargetSerializer
    queryset = Target.objects.active()

    @extend_schema(operation_id="targets_retrieve")
    def get(self, request: Request, slug: str) -> Response:
        """Give one target."""
        found = Target.objects.active().filter(slug=slug).first()
        if found is None:
            raise NotFound("target.not_found", f"There is no target {slug[:80]!r}.")
        return Response(TargetSerializer(found).data)
