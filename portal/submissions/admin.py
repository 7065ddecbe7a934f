"""Staff's view of submissions and runs. Changes go through services, as everywhere."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.accounts.current import signed_in
from portal.core.errors import DomainError
from portal.submissions import services
from portal.submissions.models import Appeal, AuditEvent, Entrant, ModelRun, Submission
from portal.submissions.runs import set_verified


class Looking(admin.ModelAdmin):
    """Rows that are looked at and changed by actions only."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come through the door."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No editing of facts; listing is allowed by the view permission."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing that scores depend on is deleted."""
        return False


@admin.register(Submission)
class SubmissionAdmin(Looking):
    """Submissions, with the one thing staff do to them."""

    list_display = ("id", "problem", "target", "author", "mode", "state", "verdict", "code", "created_at")
    list_filter = ("state", "verdict", "mode", "target")
    search_fields = ("id", "author__username", "problem__slug", "source_sha256")
    list_select_related = ("problem", "target", "author")
    actions = ("cancel_chosen",)

    @admin.action(description="Cancel the chosen submissions", permissions=["view"])
    def cancel_chosen(self, request: HttpRequest, queryset: QuerySet[Submission]) -> None:
        """Cancel what is not final."""
        for submission in queryset:
            try:
                services.cancel(by=signed_in(request), submission=submission, reason="by staff in the admin")
            except DomainError as error:
                self.message_user(request, f"{submission.pk}: {error.message}", messages.WARNING)


@admin.register(ModelRun)
class ModelRunAdmin(Looking):
    """Runs, to be verified."""

    list_display = ("name", "entrant", "harness", "prompt_variant", "date", "verified", "created_at")
    list_filter = ("verified", "harness")
    search_fields = ("name", "entrant__name")
    list_select_related = ("entrant",)
    actions = ("verify", "withdraw")

    @admin.action(description="Vouch for the chosen runs", permissions=["view"])
    def verify(self, request: HttpRequest, queryset: QuerySet[ModelRun]) -> None:
        """Put them on the model board."""
        for run in queryset:
            set_verified(by=signed_in(request), run=run, verified=True)

    @admin.action(description="Withdraw the voucher", permissions=["view"])
    def withdraw(self, request: HttpRequest, queryset: QuerySet[ModelRun]) -> None:
        """Take them off the model board."""
        for run in queryset:
            set_verified(by=signed_in(request), run=run, verified=False)


@admin.register(Entrant)
class EntrantAdmin(Looking):
    """Entrants."""

    list_display = ("name", "kind", "vendor", "open_weights", "reasoning", "owner")
    list_filter = ("kind",)
    search_fields = ("name", "vendor")


@admin.register(AuditEvent)
class AuditAdmin(Looking):
    """Who did what."""

    list_display = ("at", "actor", "action", "object_type", "object_id", "reason")
    list_filter = ("action",)
    search_fields = ("object_id", "actor__username")
    list_select_related = ("actor",)


@admin.register(Appeal)
class AppealAdmin(Looking):
    """Appeals; they are answered in the review queue."""

    list_display = ("submission", "ground", "state", "author", "created_at", "answered_by", "answered_at")
    list_filter = ("state", "ground")
    search_fields = ("submission__id", "author__username")
    list_select_related = ("submission", "author", "answered_by")
