"""API of the catalogue: open to everybody, read only."""

import hashlib
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core import query
from portal.core.errors import NotFound
from portal.core.pagination import CursorPages, SlugPages
from portal.core.views import ApiView
from problems.filters import ProblemFilter
from problems.models import Problem, Target
from problems.prompt_selectors import Choice, archive, choose
from problems.prompts import BACKENDS, DTYPES, VARIANTS
from problems.selectors import near_problems, unknown_problem, unknown_target
from problems.serializers import (
    ProblemDetailSerializer,
    ProblemSerializer,
    PromptSerializer,
    TargetSerializer,
)


class ByNumber(CursorPages):
    """Pages of the catalogue: all of it at once unless fewer are asked for."""

    page_size = 200
    ordering = ("number",)


def find_problem(slug: str) -> Problem:
    """Return an active problem by slug or number, or raise NotFound."""
    active = Problem.objects.active()
    found = active.filter(slug=slug).first()
    if found is None and slug.isascii() and slug.isdigit() and len(slug) < 5:
        found = active.filter(number=int(slug)).first()
    if found is None:
        raise NotFound("problem.not_found", unknown_problem(slug), near=near_problems(slug))
    return found


class ProblemList(ApiView):
    """The catalogue."""

    serializer_class = ProblemSerializer
    pagination_class: Any = ByNumber
    filterset_class = ProblemFilter
    queryset = Problem.objects.active()

    @extend_schema(operation_id="problems_list", responses={200: ProblemSerializer(many=True)})
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


PROMPT_PARAMETERS = [
    OpenApiParameter("target", OpenApiTypes.STR, description="Slug of the target; the official one else."),
    OpenApiParameter("variant", OpenApiTypes.STR, enum=VARIANTS),
    OpenApiParameter(
        "backend",
        OpenApiTypes.STR,
        enum=list(BACKENDS),
        description="`cuda` or `triton`; `cpp` on a target without GPUs.",
    ),
    OpenApiParameter("dtype", OpenApiTypes.STR, enum=list(DTYPES)),
]
PROMPT_NAMES = ("target", "variant", "backend", "dtype")


def _choice(request: Request) -> Choice:
    """Return what the query asks for, or raise InvalidInput."""
    return choose(**{name: query.given(request.query_params, name) for name in PROMPT_NAMES})


class ProblemPrompt(ApiView):
    """The prompt of a problem."""

    takes = (*PROMPT_NAMES, "as")
    serializer_class = PromptSerializer

    @extend_schema(
        parameters=[
            *PROMPT_PARAMETERS,
            OpenApiParameter("as", OpenApiTypes.STR, enum=["json", "text"]),
        ],
        responses={200: PromptSerializer},
    )
    def get(self, request: Request, slug: str) -> HttpResponse | Response:
        """Give the prompt as JSON, or as plain text with `?as=text`. The hash is that of the text."""
        problem = find_problem(slug)
        prompt = _choice(request).prompt(problem)
        if query.choice(request.query_params, "as", ("json", "text")) == "text":
            answer = HttpResponse(prompt.text, content_type="text/plain; charset=utf-8")
            answer["X-Prompt-Sha256"] = prompt.sha256
            return answer
        return Response(PromptSerializer(prompt).data)


class PromptArchive(ApiView):
    """The prompts of all problems."""

    takes = PROMPT_NAMES

    @extend_schema(
        operation_id="prompts_archive",
        parameters=PROMPT_PARAMETERS,
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> HttpResponse:
        """Give a zip: `manifest.json` with hashes, and a text per problem and backend (all without `backend`).

        The same catalogue gives the same bytes; their SHA-256 is the ETag.
        """
        choice = _choice(request)
        content = archive(choice, Problem.objects.active())
        answer = HttpResponse(content, content_type="application/zip")
        name = f"prompts-{choice.target.slug}-{choice.variant}.zip"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        answer["ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        return answer


class TargetList(ApiView):
    """The hardware that scores are comparable on."""

    serializer_class = TargetSerializer
    pagination_class: Any = SlugPages
    queryset = Target.objects.active()

    @extend_schema(operation_id="targets_list", responses={200: TargetSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """List targets by slug."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(TargetSerializer(page, many=True).data)


class TargetDetail(ApiView):
    """One target."""

    serializer_class = TargetSerializer
    queryset = Target.objects.active()

    @extend_schema(operation_id="targets_retrieve")
    def get(self, request: Request, slug: str) -> Response:
        """Give one target."""
        found = Target.objects.active().filter(slug=slug).first()
        if found is None:
            raise NotFound("target.not_found", unknown_target(slug))
        return Response(TargetSerializer(found).data)
