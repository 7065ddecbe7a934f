"""API: many solutions of one run in one zip."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.authentication import TokenHasScope
from portal.accounts.current import signed_in
from portal.core.errors import InvalidInput
from portal.core.views import ApiView, NeedsUser
from portal.submissions.api import idempotency_key
from portal.submissions.models import Submission
from portal.submissions.run_api import own_run
from portal.submissions.serializers import UploadSerializer, links_of
from portal.submissions.services import Order
from portal.submissions.uploads import Outcome, submit_many


class FileOutcomeSerializer(serializers.Serializer[Any]):
    """One file of the zip: `status` 202 taken, 200 sent before, else `detail` says why not.

    Sent before: under this key, or the run has the very same file as a sample that counts (unless `further`).

    Of a file that was taken `detail` is empty or says what its author should know of it.
    """

    file = serializers.CharField()
    status = serializers.IntegerField()
    id = serializers.UUIDField(allow_null=True)
    problem = serializers.CharField(allow_blank=True)
    sample = serializers.IntegerField(allow_null=True)
    links = serializers.DictField(allow_null=True)
    code = serializers.CharField(allow_blank=True)
    detail = serializers.CharField(allow_blank=True)


class UploadReportSerializer(serializers.Serializer[Any]):
    """What became of the zip."""

    accepted = serializers.IntegerField(help_text="Files taken now.")
    sent_before = serializers.IntegerField(
        help_text="Files sent before and not taken again: status 200 under `files`."
    )
    refused = serializers.IntegerField()
    not_tried = serializers.IntegerField(
        help_text="Files left out, since the batch lane was full before them."
    )
    notice = serializers.CharField(
        allow_blank=True, help_text="Says that no host serves the target now, and which targets are served."
    )
    files = FileOutcomeSerializer(many=True)


class RunUpload(ApiView):
    """Send a zip of solutions to a run."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = UploadSerializer
    write_throttle_scope = "submit"

    @extend_schema(
        operation_id="runs_upload",
        request={"multipart/form-data": UploadSerializer},
        responses={202: UploadReportSerializer},
        parameters=[OpenApiParameter("Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER)],
    )
    def post(self, request: Request, run_id: int) -> Response:
        """Queue every file that the door takes, and say of each what became of it. 422 when it takes none."""
        user = signed_in(request)
        run = own_run(request, run_id)
        form = UploadSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        got = form.validated_data
        order = Order(
            content=b"",
            filename="",
            problem="",
            target=got["target"],
            mode=got["mode"],
            run_id=run.pk,
            sample=got["sample"],
            step=got["step"],
            source_public=got["source_public"],
            results_public=got["results_public"],
            lane=Submission.Lane.BATCH,
            idempotency_key=idempotency_key(request),
            once=not got["further"],
        )
        report = submit_many(by=user, archive=got["file"].read(), order=order)
        files = [_row(outcome, request) for outcome in report.outcomes]
        if report.refused == len(files):
            first = report.outcomes[0]
            raise InvalidInput(
                "upload.none_taken",
                f"None of the {len(files) + report.not_tried} files was taken. "
                f"The first, {first.file}: {first.detail}",
                field="file",
                not_tried=report.not_tried,
                files=files,
            )
        told = {
            "accepted": report.taken,
            "sent_before": report.sent_before,
            "refused": report.refused,
            "not_tried": report.not_tried,
            "notice": report.notice,
            "files": files,
        }
        return Response(told, status=202)


def _row(outcome: Outcome, request: Request) -> dict[str, Any]:
    sent = outcome.submission
    return {
        "file": outcome.file,
        "status": outcome.status,
        "id": str(sent.pk) if sent else None,
        "problem": sent.problem.slug if sent else "",
        "sample": sent.held_sample if sent else None,
        "links": links_of(sent, request) if sent else None,
        "code": outcome.code,
        "detail": outcome.detail,
    }
