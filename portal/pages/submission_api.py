"""API reads of one submission that draw on the evaluator: state with result, result alone, logs."""

import hashlib
import json
import time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.authentication import TokenHasScope
from portal.core import query
from portal.core.errors import Conflict, NotFound
from portal.core.views import ApiView
from portal.pages.profile import trace_download
from portal.pages.results import logs_of, public_result
from portal.pages.standing_page import brief
from portal.submissions import policies
from portal.submissions.api import visible_submission
from portal.submissions.models import Submission
from portal.submissions.serializers import SubmissionSerializer

_LOOK_EVERY_S = 0.25


def _etag(body: dict[str, Any]) -> str:
    return f'W/"{hashlib.sha256(json.dumps(body, default=str, sort_keys=True).encode()).hexdigest()[:24]}"'


def _wait_seconds(request: Request) -> float:
    """Return what `?wait=` asks for, within our limit."""
    return min(query.seconds(request.query_params, "wait"), float(settings.LONG_POLL_MAX_S))


def wait_for_change(submission: Submission, seconds: float) -> None:
    """Look again until state or stage differ from what they were, it is final, or the time is up."""
    before = (submission.state, submission.stage)
    deadline = time.monotonic() + seconds
    while not submission.is_final and time.monotonic() < deadline:
        time.sleep(min(_LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))
        submission.refresh_from_db(fields=["state", "stage", "verdict", "code", "message", "finished_at"])
        if (submission.state, submission.stage) != before:
            return


class SubmissionDetail(ApiView):
    """One submission."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)
    serializer_class = SubmissionSerializer
    takes = ("wait",)

    @extend_schema(
        operation_id="submissions_retrieve",
        parameters=[
            OpenApiParameter(
                "wait", OpenApiTypes.NUMBER, description="Seconds to wait for a change, 25 at most."
            ),
            OpenApiParameter("If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER),
        ],
    )
    def get(self, request: Request, submission_id: UUID) -> Response:
        """Give state, verdict and, once done, the result. With `?wait=` the answer comes at the next change."""
        submission = visible_submission(request, submission_id)
        if seconds := _wait_seconds(request):
            wait_for_change(submission, seconds)
            submission = visible_submission(request, submission_id)
        body = dict(SubmissionSerializer(submission, context={"request": request}).data)
        body["standing"] = brief(submission)
        body["result"] = public_result(submission, request.user)
        tag = _etag(body)
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
        if body["poll_after"]:
            headers["Retry-After"] = str(max(1, int(body["poll_after"])))
        if tag in [given.strip() for given in request.headers.get("If-None-Match", "").split(",")]:
            return Response(status=304, headers=headers)
        return Response(body, headers=headers)


class SubmissionResult(ApiView):
    """The judge's result."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, submission_id: UUID) -> Response:
        """Give the result JSON; 409 while there is none yet."""
        submission = visible_submission(request, submission_id)
        result = public_result(submission, request.user)
        if result is None:
            raise Conflict(
                "result.not_yet",
                f"The submission is {submission.state}; it has no result. Ask again when its state is done.",
                state=submission.state,
            )
        return Response(result)


class SubmissionTrace(ApiView):
    """The trace of a profile."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)

    @extend_schema(responses={(200, "application/gzip"): OpenApiTypes.BINARY})
    def get(self, request: Request, submission_id: UUID) -> HttpResponse:
        """Download the Chrome trace (gzip) of mode `profile`, for those who may see the source, since it quotes it."""
        return trace_download(visible_submission(request, submission_id), request.user)


class SubmissionLogs(ApiView):
    """What the ranks printed, and their stacks when they hung."""

    permission_classes: Any = (*ApiView.permission_classes, TokenHasScope)

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, submission_id: UUID) -> Response:
        """Give logs and stacks to those who may see the source, since they quote it."""
        submission = visible_submission(request, submission_id)
        if not policies.can_view_source(request.user, submission):
            raise NotFound("logs.private", "Logs are private to the author until they open the source.")
        return Response(logs_of(submission))
