"""Who may do what: one function per question. `None` or an anonymous user stands for the public."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from portal.accounts.models import User
from portal.core.errors import TooMany
from portal.submissions.models import Entrant, ModelRun, Submission
from portal.submissions.states import LIVE, Verdict

Viewer = User | AnonymousUser
BATCH_FULL = "quota.batch"


def _owns(user: Viewer, submission: Submission) -> bool:
    return user.is_authenticated and (submission.author_id == user.pk or user.is_staff)


def can_view(user: Viewer, submission: Submission) -> bool:
    """See that it exists, its state, verdict and figures."""
    return submission.results_public or _owns(user, submission)


def can_view_source(user: Viewer, submission: Submission) -> bool:
    """See the source, and what quotes it: logs and stacks."""
    if not submission.source:  # erased with its author's account
        return False
    shown = submission.source_public and not submission.removed
    return _owns(user, submission) or (shown and can_view(user, submission))


def can_view_result(user: Viewer, submission: Submission) -> bool:
    """See the figures. Of what was removed, only its author and staff still do; others see a tombstone."""
    return _owns(user, submission) or (not submission.removed and can_view(user, submission))


def can_view_entrant(user: Viewer, entrant: Entrant) -> bool:
    """See its page: who owns it, and who may see something that it sent."""
    if user.is_authenticated and (entrant.owner_id == user.pk or user.is_staff):
        return True
    return Submission.objects.visible_to(user).filter(run__entrant=entrant).exists()


def can_change(user: Viewer, submission: Submission) -> bool:
    """Cancel it, open or close its source and results."""
    return _owns(user, submission)


def can_review(user: Viewer) -> bool:
    """See the review queue; disqualify, reinstate, confirm, answer appeals, re-score what is not theirs."""
    return user.is_authenticated and user.is_active and user.is_staff


def can_withdraw(user: Viewer, submission: Submission) -> bool:
    """Take one's own finished submission off every board, for good."""
    return user.is_authenticated and submission.author_id == user.pk


def can_appeal(user: Viewer, submission: Submission) -> bool:
    """Object to a rejection or a disqualification of one's own submission."""
    return user.is_authenticated and submission.author_id == user.pk


def can_submit_to(user: User, run: ModelRun) -> bool:
    """Add submissions to a run."""
    return user.is_staff or run.entrant.owner_id == user.pk


@dataclass(frozen=True)
class Quota:
    """What a user may still send now. Submissions that ended by a fault of ours are not counted.

    What waits in the batch lane, behind everybody's interactive work, has a limit of its own and does not
    count for the other two.
    """

    queued: int
    queued_limit: int
    hour: int
    hour_limit: int
    frees_at: datetime | None
    batch: int = 0
    batch_limit: int = 0

    @property
    def remaining(self) -> int:
        """How many submissions would be accepted now."""
        return max(0, min(self.queued_limit - self.queued, self.hour_limit - self.hour))


def quota_of(user: User) -> Quota:
    """Return the quota of a user. Count inside the transaction that inserts, or it is only a forecast."""
    mine = Submission.objects.filter(author=user).exclude(verdict=Verdict.INFRA_ERROR)
    live = mine.filter(state__in=[s.value for s in LIVE])
    batch = live.filter(lane=Submission.Lane.BATCH).count()
    interactive = mine.exclude(lane=Submission.Lane.BATCH)
    recent = interactive.filter(created_at__gt=timezone.now() - timedelta(hours=1))
    oldest = recent.order_by("created_at").values_list("created_at", flat=True).first()
    return Quota(
        queued=live.count() - batch,
        queued_limit=settings.SUBMIT_MAX_QUEUED,
        hour=recent.count(),
        hour_limit=settings.SUBMIT_MAX_PER_HOUR,
        frees_at=oldest + timedelta(hours=1) if oldest else None,
        batch=batch,
        batch_limit=settings.SUBMIT_MAX_BATCH,
    )


def demand_quota(user: User, lane: int = Submission.Lane.INTERACTIVE) -> None:
    """Raise TooMany when `user` may not send another submission into a lane now. Staff have no quota."""
    if user.is_staff:
        return
    quota = quota_of(user)
    if lane == Submission.Lane.BATCH:
        if quota.batch >= quota.batch_limit:
            raise TooMany(
                BATCH_FULL,
                f"{quota.batch} of your submissions wait in the batch lane; at most {quota.batch_limit} may. "
                "Wait for some to end or cancel some.",
                retry_after=60,
                limit=quota.batch_limit,
            )
        return
    if quota.queued >= quota.queued_limit:
        raise TooMany(
            "quota.queued",
            f"{quota.queued} of your submissions are waiting or running; at most {quota.queued_limit} may be. "
            "Wait for one to end or cancel one.",
            retry_after=15,
            limit=quota.queued_limit,
        )
    if quota.hour >= quota.hour_limit and quota.frees_at:
        wait = max(1, int((quota.frees_at - timezone.now()).total_seconds()) + 1)
        raise TooMany(
            "quota.hour",
            f"You sent {quota.hour} submissions in the last hour; at most {quota.hour_limit} are taken.",
            retry_after=wait,
            limit=quota.hour_limit,
        )
