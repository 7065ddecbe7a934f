"""What waits for staff: appeals, new bests that were not confirmed, results with flags. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluator.models import Attempt, Rescore
from evaluator.services.rescores import OPEN
from leaderboard.models import Score
from portal.submissions.models import Appeal, AuditEvent, Submission

TAKEN = 200


@dataclass(frozen=True, slots=True)
class Item:
    """One submission that wants a look, with every reason for it."""

    submission: Submission
    appeals: list[Appeal]
    provisional: list[Score]
    flags: list[dict[str, Any]]
    since: datetime
    measuring: bool

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for a person: an appeal, or a new best that nothing will confirm by itself."""
        return bool(self.appeals) or (bool(self.provisional) and not self.measuring)


def items(*, limit: int = TAKEN) -> list[Item]:
    """The queue: who waits for a person first, then the oldest; at most `limit` submissions of each kind."""
    appeals = list(_open_appeals()[:limit])
    provisional = list(_provisional()[:limit])
    attempts = list(flagged_attempts()[:limit])
    ids = {row.submission_id for row in appeals} | {row.submission_id for row in provisional}
    ids |= {row.submission_id for row in attempts}
    found = Submission.objects.filter(pk__in=ids).with_names()
    open_orders = Rescore.objects.filter(submission__in=ids, state__in=OPEN)
    measuring = set(open_orders.values_list("submission_id", flat=True))
    made = [
        _item(
            submission,
            [row for row in appeals if row.submission_id == submission.pk],
            [row for row in provisional if row.submission_id == submission.pk],
            [row for row in attempts if row.submission_id == submission.pk],
            submission.pk in measuring,
        )
        for submission in found
    ]
    return sorted(made, key=lambda item: (not item.urgent, item.since))


def _item(
    submission: Submission,
    appeals: list[Appeal],
    provisional: list[Score],
    attempts: list[Attempt],
    measuring: bool,
) -> Item:
    times = [appeal.created_at for appeal in appeals] + [score.created_at for score in provisional]
    times += [row.finished_at for row in attempts if row.finished_at]
    return Item(
        submission,
        appeals,
        provisional,
        [flag for row in attempts for flag in for_review(row.triage)],
        min(times, default=submission.created_at),
        measuring,
    )


def _open_appeals() -> QuerySet[Appeal]:
    return Appeal.objects.filter(state=Appeal.State.OPEN).order_by("created_at")


def _provisional() -> QuerySet[Score]:
    waiting = Score.objects.filter(provisional=True, superseded_at=None, submission__removed="")
    return waiting.order_by("created_at", "id")


def flagged_attempts() -> QuerySet[Attempt]:
    """Scored attempts with a flag that wants a look, that nobody looked at, of correct submissions that stand.

    A source that failed harms no board: its flags are on its page, and in the queue only with an appeal.
    """
    confirming = Q(rescore__kind=Rescore.Kind.CONFIRM)
    scored = Attempt.objects.filter(exit_reason=Attempt.Exit.SCORED, review=None).exclude(confirming)
    newer = scored.filter(submission=OuterRef("submission"), number__gt=OuterRef("number"))
    flagged = scored.filter(triage__icontains='"review"').filter(~Exists(newer))
    standing = flagged.filter(submission__removed="", submission__verdict="correct", submission__mode="score")
    return standing.order_by("finished_at", "id")


def for_review(triage: Any) -> list[dict[str, Any]]:
    """The flags of a stored scan that want a look."""
    return [flag for flag in triage or [] if flag.get("weight") == "review"]


def waiting_count() -> int:
    """How many orders to score again wait for a host."""
    return Rescore.objects.filter(state=Rescore.State.QUEUED).count()


def harness_versions() -> list[str]:
    """Protocol versions that current scores were measured with."""
    rows = Score.objects.filter(superseded_at=None).order_by("harness_version")
    return list(rows.values_list("harness_version", flat=True).distinct())


def history(submission_id: UUID) -> Sequence[AuditEvent]:
    """Everything that was done to a submission, the newest first."""
    rows = AuditEvent.objects.filter(object_type="submission", object_id=str(submission_id))
    return list(rows.select_related("actor")[:100])


def latest_decisions(limit: int = 20) -> Sequence[AuditEvent]:
    """The newest decisions of people and of the confirmation rule, over all submissions."""
    told = Q(action__startswith="score.") | Q(action__startswith="appeal.") | Q(action__startswith="batch.")
    told |= Q(
        action__in=(
            "submission.disqualified", "submission.withdrawn", "submission.reinstated", "submission.rescore",
            "submission.rejudged", "submission.reviewed",
        )
    )  # fmt: skip
    return list(AuditEvent.objects.filter(told).select_related("actor")[:limit])
