"""Reads of submissions: who sees what, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Count, Max, Q, QuerySet

from portal.submissions.states import FINAL, Mode, State, Verdict

if TYPE_CHECKING:
    from portal.accounts.models import User
    from portal.submissions.models import ModelRun, Submission  # noqa: F401


def freed(of: str = "") -> Q:
    """What ended without a verdict and gave its sample back; `of` is the path to submissions, with its underscores."""
    by_us = Q(**{f"{of}verdict": Verdict.INFRA_ERROR})
    return by_us | Q(**{f"{of}state": State.CANCELLED, f"{of}stage": ""})


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
        """Keep what takes the place of its sample: sent for a board, not cancelled or ended by a fault of ours.

        What was cancelled while a host judged it keeps its place, or its author could stop whatever looks slow.
        """
        return self.filter(mode=Mode.SCORE).exclude(freed())

    def counts_by(self, field: str) -> QuerySet[Any, dict[str, Any]]:
        """Count per value of a field what is sent, judged and correct; what was removed counts as not correct.

        Beside it: how many `samples` there are, and the `highest`.
        """
        correct = Q(verdict=Verdict.CORRECT, removed="")
        return (
            self.order_by()
            .values(field)
            .annotate(
                sent=Count("pk"),
                judged=Count("pk", filter=Q(state__in=FINAL)),
                correct=Count("pk", filter=correct),
                samples=Count("sample", distinct=True),
                highest=Max("sample"),
            )
        )

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

    def seen_by(self, user: Any) -> ModelRunQuerySet:
        """Keep the runs that are `user`'s or hold a file of theirs, the newest first."""
        own = Q(entrant__owner=user) | Q(submissions__author=user)
        return self.filter(own).select_related("entrant").distinct().order_by("-pk")

    def campaigns(self) -> ModelRunQuerySet:
        """Leave out what holds the single files of people, which is no campaign of anybody."""
        return self.exclude(harness="unsorted", entrant__kind="person")

    def with_counts(self) -> ModelRunQuerySet:
        """Count what holds a sample: `sent`, `judged` and `correct`; `problems` with any, and when the last came."""
        sent = Q(submissions__mode=Mode.SCORE) & ~freed("submissions__")
        correct = Q(submissions__verdict=Verdict.CORRECT, submissions__removed="")
        return self.annotate(
            sent=Count("submissions", filter=sent),
            judged=Count("submissions", filter=sent & Q(submissions__state__in=FINAL)),
            correct=Count("submissions", filter=sent & correct),
            problems=Count("submissions__problem", filter=sent, distinct=True),
            last_sent=Max("submissions__created_at"),
        )
