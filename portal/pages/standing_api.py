"""API of a submission's standing: withdraw, score again, appeal and its answer."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard import review
from portal.accounts.authentication import TokenHasScope
from portal.accounts.current import signed_in
from portal.core.errors import NotFound
from portal.core.fields import Body, BooleanField
from portal.core.pagination import CursorPages
from portal.core.views import ApiView, NeedsUser
from portal.submissions import policies, standing
from portal.submissions.api import visible_submission
from portal.submissions.models import Appeal, Submission
from portal.submissions.serializers import CancelSerializer, SubmissionSerializer


class AppealTextSerializer(Body):
    """Why the author objects."""

    text = serializers.CharField(max_length=standing.MAX_TEXT)


class AnswerSerializer(Body):
    """What staff answer."""

    upheld = BooleanField()
    answer = serializers.CharField(max_length=standing.MAX_TEXT)


class AppealSerializer(serializers.ModelSerializer[Appeal]):
    """An appeal and, once there is one, its answer."""

    class Meta:
        model = Appeal
        fields = ("ground", "text", "created_at", "state", "answer", "answered_at")
        read_only_fields = fields


class RescoreSerializer(serializers.Serializer[Any]):
    """An order to score again."""

    kind = serializers.CharField()
    state = serializers.CharField()
    created_at = serializers.DateTimeField()


class SubmissionWithdraw(ApiView):
    """Take an own finished submission off every board and list."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = CancelSerializer

    @extend_schema(request=CancelSerializer, responses={200: SubmissionSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Withdraw it for good; its sample stays used. 409 while it runs or when it was removed."""
        form = CancelSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        submission: Submission = visible_submission(request, submission_id)
        review.withdraw(by=signed_in(request), submission=submission, reason=form.validated_data["reason"])
        return Response(SubmissionSerializer(submission, context={"request": request}).data)


class SubmissionRescore(ApiView):
    """Have a stale result measured again."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = CancelSerializer

    @extend_schema(request=CancelSerializer, responses={202: RescoreSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Queue it: authors once it is stale (403 before), staff always."""
        form = CancelSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        made = review.rescore(
            submission=visible_submission(request, submission_id),
            by=signed_in(request),
            reason=form.validated_data["reason"],
        )
        return Response(RescoreSerializer(made).data, status=202)


class OldestFirst(CursorPages):
    """In the order in which they came."""

    ordering = ("created_at", "id")


class SubmissionAppeal(ApiView):
    """Object to a rejection or a disqualification, and read the answer."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = AppealTextSerializer
    pagination_class = OldestFirst
    queryset = Appeal.objects.none()

    @extend_schema(operation_id="submissions_appeals_list", responses={200: AppealSerializer(many=True)})
    def get(self, request: Request, submission_id: UUID) -> Response:
        """List the appeals of an own submission with their answers."""
        submission = visible_submission(request, submission_id)
        if not policies.can_change(signed_in(request), submission):
            raise NotFound("appeal.private", "Appeals are between the author and staff.")
        page = self.paginate_queryset(submission.appeals.all())
        return self.get_paginated_response(AppealSerializer(page, many=True).data)

    @extend_schema(request=AppealTextSerializer, responses={201: AppealSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Appeal, once for each ground. 409 when there is nothing to object to."""
        submission = visible_submission(request, submission_id)
        form = AppealTextSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        made = standing.appeal(by=signed_in(request), submission=submission, text=form.validated_data["text"])
        return Response(AppealSerializer(made).data, status=201)


class AppealAnswer(ApiView):
    """Staff's answer to the open appeal of a submission."""

    permission_classes: Any = (NeedsUser, TokenHasScope)
    serializer_class = AnswerSerializer

    @extend_schema(request=AnswerSerializer, responses={200: AppealSerializer})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Uphold or dismiss it. Upheld: a disqualification ends, a rejection is judged again."""
        submission = visible_submission(request, submission_id)
        standing.demand_reviewer(signed_in(request))
        form = AnswerSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        waiting = submission.appeals.filter(state=Appeal.State.OPEN).first()
        if waiting is None:
            raise NotFound("appeal.none_open", "No appeal of this submission waits for an answer.")
        answered = review.answer_appeal(
            appeal=waiting,
            by=signed_in(request),
            upheld=form.validated_data["upheld"],
            text=form.validated_data["answer"],
        )
        return Response(AppealSerializer(answered).data)
