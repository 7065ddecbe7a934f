"""Reads of submissions: who sees what, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Q

from portal.submissions.states import Mode, State, Verdict

if TYPE_CHECKING:
    from portal.accounts.models import User
    from portal.submissions.models import ModelRun, Submission  # noqa: F401


class SubmissionQuerySet(models.QuerySet["Submission", "Submission"]):
    """Rows of submissions."""

    def visible_to(self, user: User | AnonymousUser) -> SubmissionQuerySet:
        """Keep what `user` may see: public results, their own, and everything for staff."""
        if user.is_staff:
            return self.all()
        seen = Q(results_public=True)
        if user.is_authenticated:
            seen |= Q(author=user)
        return self.filter(seen)

    def listed_for(self, user: User | AnonymousUser) -> SubmissionQuerySet:
        """Keep what lists show to `user`: what they may see, without what was removed unless it is theirs."""
        seen = self.visible_to(user)
        if user.is_staff:
            return seen
        kept = Q(removed="")
        if user.is_authenticated:
            kept |= Q(author=user)
        return seen.filter(kept)

    def holding_samples(self) -> SubmissionQuerySet:
        """Keep what takes the place of its sample: sent for a board, neither cancelled nor ended by a fault of ours."""
        return self.filter(mode=Mode.SCORE).exclude(Q(verdict=Verdict.INFRA_ERROR) | Q(state=State.CANCELLED))

    def same_source_as(self, submission: Submission) -> SubmissionQuerySet:
        """Keep the other submissions of the very same file, the earliest first."""
        same = self.filter(source_sha256=submission.source_sha256).exclude(pk=submission.pk)
        return same.order_by("created_at", "id")

    def with_names(self) -> SubmissionQuerySet:
        """Join what lists and pages name: author, run, entrant, problem, target."""
        return self.select_related("author", "run__entrant", "problem", "target")

    def in_line(self) -> SubmissionQuerySet:
        """Keep what waits, by lane, then time; `line.order_of_service` lets the authors take turns."""
        return self.filter(state=State.QUEUED).order_by("lane", "queued_at", "id")


class ModelRunQuerySet(models.QuerySet["ModelRun", "ModelRun"]):
    """Rows of runs."""

    def usable_by(self, user: Any) -> ModelRunQuerySet:
        """Keep the runs that `user` may submit to: those of entrants they own."""
        return self.filter(entrant__owner=user).select_related("entrant")
