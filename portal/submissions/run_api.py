"""API: one run and how far it is."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.authentication import TokenHasScope
from portal.accounts.current import signed_in
from portal.core.errors import InvalidInput, NotFound
from portal.core.views import ApiView, NeedsUser
from portal.submissions.models import ModelRun
from portal.submissions.progress import progress_of, targets_of
from portal.submissions.runs import find_run
from portal.submissions.serializers import RunSerializer
from problems.models import Target


class ProblemOfRunSerializer(serializers.Serializer[Any]):
    """Files sent for one problem that hold samples, and the newest of them."""

    problem = serializers.CharField(source="problem.slug")
    sent = serializers.IntegerField()
    judged = serializers.IntegerField()
    correct = serializers.IntegerField()
    newest = serializers.UUIDField(source="newest.pk")


class ProgressSerializer(serializers.Serializer[Any]):
    """How far a run is on a target: problems of the track that were sent, judged and solved, and those missing."""

    target = serializers.CharField()
    track = serializers.IntegerField(help_text="Problems that count for the model board.")
    sent = serializers.IntegerField(help_text="Those of them of which something was sent.")
    judged = serializers.IntegerField(help_text="Those with a verdict.")
    solved = serializers.IntegerField(help_text="Those with a correct file that stands.")
    missing = serializers.ListField(child=serializers.CharField(), help_text="Slugs of those never sent.")
    waiting = serializers.IntegerField(help_text="Files without a verdict yet.")
    uncounted = serializers.IntegerField(help_text="Files in other modes than `score`.")
    problems = ProblemOfRunSerializer(many=True, help_text="What was sent, also beside the track.")


class RunDetailSerializer(RunSerializer):
    """One run with its progress on each target it was sent to."""

    progress = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "progress")
        read_only_fields = fields

    @extend_schema_field(ProgressSerializer(many=True))
    def get_progress(self, run: ModelRun) -> Any:
        """Give a row for each target, the one with most of the run first."""
        return ProgressSerializer([_on(run, target) for target in targets_of(run)], many=True).data


def _on(run: ModelRun, target: Target) -> dict[str, Any]:
    found = progress_of(run, target)
    return {
        "target": target.slug,
        "track": len(found.track),
        "sent": found.problems_sent,
        "judged": found.judged,
        "solved": found.solved,
        "missing": [row.problem.slug for row in found.missing],
        "waiting": found.waiting,
        "uncounted": found.uncounted,
        "problems": [row for row in found.rows if row.sent],
    }


def own_run(request: Request, run_id: int) -> ModelRun:
    """Return a run of the caller's, any for staff; NotFound for the rest."""
    try:
        return find_run(by=signed_in(request), run_id=run_id)
    except InvalidInput as error:
        raise NotFound("run.not_found", error.message) from None


class RunDetail(ApiView):
    """One of your runs."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = RunDetailSerializer

    @extend_schema(operation_id="runs_retrieve", responses={200: RunDetailSerializer})
    def get(self, request: Request, run_id: int) -> Response:
        """Give the run, and per target what was sent, judged and solved and what is missing."""
        return Response(RunDetailSerializer(own_run(request, run_id)).data)
