"""Staff's view of scores and reviews. Decisions go through the services that pages and API use."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import QuerySet
from django.http import HttpRequest

from leaderboard import review
from leaderboard.models import ImportedResult, Review, Score
from portal.accounts.current import signed_in
from portal.core.errors import DomainError
from portal.submissions.admin import Looking
from portal.submissions.models import Submission


class ReasonForm(ActionForm):
    """The reason that every decision is kept with."""

    reason = forms.CharField(max_length=300, required=False, label="Reason:")


@admin.register(Score)
class ScoreAdmin(Looking):
    """Scores, with what staff decide about the submission behind them."""

    list_display = (
        "submission", "problem", "target", "size", "verdict", "speedup", "provisional", "ranked",
        "problem_revision", "harness_version", "superseded_at", "created_at",
    )  # fmt: skip
    list_filter = ("provisional", "ranked", "verdict", "target", "harness_version")
    search_fields = ("submission__id", "problem__slug", "entrant__name")
    list_select_related = ("submission", "problem", "target")
    action_form = ReasonForm
    actions = ("disqualify", "reinstate", "confirm", "rescore", "rescore_problem", "rescore_version")

    def _each(self, request: HttpRequest, queryset: QuerySet[Score], work: Any) -> None:
        """Do `work` once per submission; tell how many went well, and why others did not."""
        user, reason, done = signed_in(request), request.POST.get("reason", ""), 0
        for submission in Submission.objects.filter(pk__in=queryset.values("submission_id")):
            try:
                work(submission=submission, by=user, reason=reason)
                done += 1
            except DomainError as error:
                self.message_user(request, f"{submission.pk}: {error.message}", messages.WARNING)
        self.message_user(request, f"Done for {done} submissions.")

    def _batches(self, request: HttpRequest, batches: list[review.Batch]) -> None:
        user, reason = signed_in(request), request.POST.get("reason", "")
        try:
            placed = [review.rescore_all(batch=batch, by=user, reason=reason) for batch in batches]
        except DomainError as error:
            self.message_user(request, error.message, messages.WARNING)
        else:
            orders, busy = (sum(counts) for counts in zip(*placed, strict=True))
            self.message_user(
                request, f"Scored again: {orders}. Left out, since they are measured now: {busy}."
            )

    @admin.action(description="Disqualify the submissions", permissions=["view"])
    def disqualify(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Take them off every surface."""
        self._each(request, queryset, review.disqualify)

    @admin.action(description="Reinstate the submissions", permissions=["view"])
    def reinstate(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Let them stand again."""
        self._each(request, queryset, review.reinstate)

    @admin.action(description="Confirm new bests by hand", permissions=["view"])
    def confirm(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Let provisional scores take their places."""
        self._each(request, queryset, review.confirm)

    @admin.action(description="Score the submissions again", permissions=["view"])
    def rescore(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Replace their scores."""
        self._each(request, queryset, review.rescore)

    @admin.action(description="Score everything of these problems again", permissions=["view"])
    def rescore_problem(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Replace all scores of the problems of the chosen rows."""
        slugs = sorted(set(queryset.order_by().values_list("problem__slug", flat=True)))
        self._batches(request, [review.Batch(problem=slug) for slug in slugs])

    @admin.action(description="Score everything of these protocol versions again", permissions=["view"])
    def rescore_version(self, request: HttpRequest, queryset: QuerySet[Score]) -> None:
        """Replace all scores that were measured by the protocol versions of the chosen rows."""
        versions = sorted(set(queryset.order_by().values_list("harness_version", flat=True)))
        self._batches(request, [review.Batch(harness_version=version) for version in versions])


@admin.register(Review)
class ReviewAdmin(Looking):
    """What was looked at, by whom."""

    list_display = ("attempt", "by", "at", "note")
    list_select_related = ("attempt", "by")


@admin.register(ImportedResult)
class ImportedResultAdmin(Looking):
    """What was imported; staff may take it away again, which the admin's log keeps."""

    list_display = ("label", "problem", "target", "size", "verdict", "speedup", "origin", "imported_at")
    list_filter = ("target", "verdict")
    search_fields = ("label", "problem__slug", "origin", "content_hash")
    list_select_related = ("problem", "target")

    def has_delete_permission(self, request: HttpRequest, obj: ImportedResult | None = None) -> bool:
        """Superusers, and staff with the right."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
