"""API of submissions and runs: parse, call one service, answer."""

import re
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.authentication import TokenHasScope
from portal.accounts.current import signed_in
from portal.core.errors import InvalidInput, NotFound
from portal.core.filtering import OneOf, WholeNumber
from portal.core.pagination import CursorPages
from portal.core.views import ApiView, NeedsUser
from portal.submissions import policies
from portal.submissions.models import ModelRun, Submission
from portal.submissions.runs import create_run
from portal.submissions.serializers import (
    CancelSerializer,
    ListedSubmissionSerializer,
    NewRunSerializer,
    OrderSerializer,
    QuotaSerializer,
    RunSerializer,
    SubmissionSerializer,
    VisibilitySerializer,
)
from portal.submissions.services import Order, cancel, set_visibility, submit
from portal.submissions.states import Mode, State, Verdict
from portal.submissions.validation import MAX_BYTES
from problems.models import Problem
from problems.selectors import target_slugs, unknown_problem, unknown_target

_KEY = re.compile(r"[\x21-\x7e]{1,128}")


def visible_submission(request: Request | HttpRequest, submission_id: UUID) -> Submission:
    """Return the submission, or raise NotFound: of what is not theirs, people learn nothing."""
    found = Submission.objects.visible_to(request.user).with_names().filter(pk=submission_id).first()
    if found is None:
        raise NotFound("submission.not_found", "There is no such submission, or it is not yours to see.")
    return found


_YES = ("true", "True", "1")


def _one_of(words: type[StrEnum]) -> filters.ChoiceFilter:
    """Return a filter that takes these words and names them when it gets another."""
    names = [word.value for word in words]
    told = {"invalid_choice": f"'%(value).40s' is none of: {', '.join(names)}."}
    return filters.ChoiceFilter(choices=[(name, name) for name in names], error_messages=told)


def _problem_names() -> list[str]:
    rows = Problem.objects.active().values_list("slug", "number")
    return [str(name) for row in rows for name in row]


class SubmissionFilter(filters.FilterSet):
    """`?problem=&target=&state=&verdict=&mode=&mine=true`."""

    problem = OneOf(method="of_problem", known=_problem_names, told=unknown_problem)
    target = OneOf(field_name="target__slug", known=target_slugs, told=unknown_target)
    state = _one_of(State)
    verdict = _one_of(Verdict)
    mode = _one_of(Mode)
    run = WholeNumber(field_name="run_id", min_value=1, max_value=2**62)
    mine = OneOf(method="only_mine", known=lambda: (*_YES, "false", "False", "0"))

    class Meta:
        model = Submission
        fields = ()

    def of_problem(self, queryset: Any, name: str, value: str) -> Any:
        """Keep those for one problem, by slug or number."""
        return queryset.filter(**{"problem__number" if value.isdigit() else "problem__slug": value})

    def only_mine(self, queryset: Any, name: str, value: str) -> Any:
        """Keep the caller's own when asked to."""
        if value not in _YES:
            return queryset
        user = self.request.user
        return queryset.filter(author=user) if user.is_authenticated else queryset.none()


class SubmissionList(ApiView):
    """Send a source, or list what you may see."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)
    serializer_class = ListedSubmissionSerializer
    pagination_class = CursorPages
    filterset_class = SubmissionFilter
    write_throttle_scope = "submit"
    queryset = Submission.objects.none()

    def get_queryset(self) -> Any:
        """Return what lists show to the caller."""
        return Submission.objects.listed_for(self.request.user).with_names()

    @extend_schema(operation_id="submissions_list", responses={200: ListedSubmissionSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """List submissions, newest first."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="submissions_create",
        request={"multipart/form-data": OrderSerializer, "application/json": OrderSerializer},
        responses={202: SubmissionSerializer, 200: SubmissionSerializer},
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="Sending the same request twice under one key makes one submission.",
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Store the source and queue it: 202 with where to look. 200 when this key was accepted before."""
        accepted = submit(by=signed_in(request), order=_order(request))
        body = SubmissionSerializer(accepted.submission, context={"request": request}).data
        body["notice"] = " ".join(filter(None, (accepted.notice, body["notice"])))
        headers = {"Location": body["links"]["self"]}
        if body["poll_after"]:
            headers["Retry-After"] = str(max(1, int(body["poll_after"])))
        return Response(body, status=200 if accepted.replayed else 202, headers=headers)


def _order(request: Request) -> Order:
    if not isinstance(request.data, dict):
        raise ParseError("Send one JSON object or a form.")
    form = OrderSerializer(data=request.data)
    form.is_valid(raise_exception=True)
    got = form.validated_data
    if "file" in got:
        upload = got["file"]
        # one byte more than the limit is enough to see that it is too large
        content, name, field = upload.read(MAX_BYTES + 1), upload.name or "solution.py", "file"
    else:
        content, name, field = got["source"].encode("utf-8", "surrogatepass"), "solution.py", "source"
    return Order(
        content=content,
        filename=name,
        source_field=field,
        problem=got["problem"],
        target=got["target"],
        mode=got["mode"],
        size=got["size"],
        run_id=got["run"],
        model=got["model"],
        sample=got["sample"],
        step=got["step"],
        parent=got["parent"],
        source_public=got["source_public"],
        results_public=got["results_public"],
        lane=Submission.Lane.BATCH if got["batch"] else Submission.Lane.INTERACTIVE,
        idempotency_key=idempotency_key(request),
    )


def idempotency_key(request: Request) -> str:
    """Return the caller's `Idempotency-Key`, empty without one; InvalidInput for what is none."""
    key = request.headers.get("Idempotency-Key", "")
    if key and not _KEY.fullmatch(key):
        raise InvalidInput(
            "idempotency.key_invalid", "A key has 1 to 128 visible ASCII characters.", field="Idempotency-Key"
        )
    return key


class SubmissionCancel(ApiView):
    """Stop a submission that is not final."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = CancelSerializer

    @extend_schema(request=CancelSerializer, responses={200: SubmissionSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Cancel it; 409 when it is done already."""
        form = CancelSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        submission = cancel(
            by=signed_in(request),
            submission=visible_submission(request, submission_id),
            reason=form.validated_data["reason"],
        )
        return Response(SubmissionSerializer(submission, context={"request": request}).data)


class SubmissionVisibility(ApiView):
    """Open or close the source or the results."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = VisibilitySerializer

    @extend_schema(request=VisibilitySerializer, responses={200: SubmissionSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Change who may see it."""
        form = VisibilitySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        submission = set_visibility(
            by=signed_in(request),
            submission=visible_submission(request, submission_id),
            **form.validated_data,
        )
        return Response(SubmissionSerializer(submission, context={"request": request}).data)


class SubmissionSource(ApiView):
    """The file as it was sent."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, submission_id: UUID) -> HttpResponse:
        """Download the source; 404 for those who may not see it."""
        submission = visible_submission(request, submission_id)
        if not policies.can_view_source(request.user, submission):
            raise NotFound("source.private", "The source is private to its author until they open it.")
        with submission.source.open("rb") as stream:
            content = stream.read()
        answer = HttpResponse(content, content_type="application/octet-stream")
        answer["Content-Disposition"] = f'attachment; filename="{submission.download_name}"'
        return answer


class RunList(ApiView):
    """Your runs."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = RunSerializer
    pagination_class = CursorPages
    queryset = ModelRun.objects.none()

    @extend_schema(operation_id="runs_list", responses={200: RunSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """List the runs you may submit to."""
        page = self.paginate_queryset(ModelRun.objects.usable_by(signed_in(request)))
        return self.get_paginated_response(RunSerializer(page, many=True).data)

    @extend_schema(request=NewRunSerializer, responses={201: RunSerializer})
    def post(self, request: Request) -> Response:
        """Make a run."""
        form = NewRunSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        run = create_run(by=signed_in(request), **form.validated_data)
        return Response(RunSerializer(run).data, status=201)


class QuotaView(ApiView):
    """What you may still send."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = QuotaSerializer

    @extend_schema(responses={200: QuotaSerializer})
    def get(self, request: Request) -> Response:
        """Say how much of the quota is used and when it frees."""
        return Response(QuotaSerializer(policies.quota_of(signed_in(request))).data)
