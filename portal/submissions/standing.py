"""Whether a submission stands: disqualified by staff, withdrawn by its author, reinstated; appeals of it.

Each write is one transaction with one compare-and-set and one audit row. What is removed leaves every
board and list at once, since all of them read the same column; its page stays as a tombstone.
"""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.core.errors import Conflict, InvalidInput, NotAllowed
from portal.submissions import policies, shown
from portal.submissions.models import Appeal, AuditEvent, Submission
from portal.submissions.states import State, Verdict

MAX_REASON = 300
MAX_TEXT = 4000


def demand_reviewer(user: policies.Viewer) -> None:
    """Raise NotAllowed for everybody but staff."""
    if not policies.can_review(user):
        raise NotAllowed("review.staff_only", "Only staff may do this.")


def reason_of(text: str) -> str:
    """The reason as it is kept; InvalidInput when there is none or it is too long to be read later."""
    told = " ".join(text.split())
    if not told:
        raise InvalidInput("reason.missing", "Give a reason: it is shown and kept.", field="reason")
    if len(told) > MAX_REASON:
        raise InvalidInput("reason.too_long", f"At most {MAX_REASON} characters.", field="reason")
    return told


def audit(action: str, submission: Submission, by: Any, reason: str = "", **after: object) -> None:
    """Add one row about a submission to the audit trail."""
    AuditEvent.objects.create(
        actor=by,
        action=action,
        object_type="submission",
        object_id=str(submission.pk),
        after=after,
        reason=reason[:MAX_REASON],
    )


@transaction.atomic
def disqualify(*, by: User, submission: Submission, reason: str) -> None:
    """Take a submission off every surface. Raises NotAllowed, InvalidInput, Conflict (removed already)."""
    demand_reviewer(by)
    _remove(submission, Submission.Removed.DISQUALIFIED, reason_of(reason), by)


@transaction.atomic
def withdraw(*, by: User, submission: Submission, reason: str = "") -> None:
    """Take one's own submission off every surface; its sample stays used and counts as failed.

    Raises NotAllowed for others, Conflict while it runs (cancel it then) or when it was removed already.
    """
    if not policies.can_withdraw(by, submission):
        raise NotAllowed("submission.not_yours", "Only the author may withdraw this submission.")
    if submission.state != State.DONE:
        raise Conflict(
            "submission.not_done",
            f"It is {submission.state}; only what is done can be withdrawn. Cancel what still waits or runs.",
        )
    _remove(submission, Submission.Removed.WITHDRAWN, " ".join(reason.split())[:MAX_REASON], by)


@transaction.atomic
def reinstate(*, by: User, submission: Submission, reason: str) -> None:
    """Let a removed submission stand again. Raises NotAllowed, InvalidInput, Conflict (it stands)."""
    demand_reviewer(by)
    told = reason_of(reason)
    _put_back(submission, by, told)


def _remove(submission: Submission, how: str, reason: str, by: User) -> None:
    standing = Submission.objects.filter(pk=submission.pk, removed="")
    if not standing.update(removed=how, removed_at=timezone.now(), removed_reason=reason):
        raise Conflict("submission.removed", "It was removed before.")
    audit(f"submission.{how}", submission, by, reason, removed=str(how))
    submission.refresh_from_db(fields=["removed", "removed_at", "removed_reason"])
    shown.changed(submission)


def _put_back(submission: Submission, by: User, reason: str) -> None:
    removed = Submission.objects.filter(pk=submission.pk).exclude(removed="")
    if not removed.update(removed="", removed_at=None, removed_reason=""):
        raise Conflict("submission.stands", "It stands already.")
    audit("submission.reinstated", submission, by, reason, removed="")
    submission.refresh_from_db(fields=["removed", "removed_at", "removed_reason"])
    shown.changed(submission)


# --- appeals ---------------------------------------------------------------------------------------


def ground_of(submission: Submission) -> str:
    """What an author could object to now; empty when there is nothing."""
    if submission.removed == Submission.Removed.DISQUALIFIED:
        return Appeal.Ground.DISQUALIFIED
    if submission.verdict == Verdict.REJECTED and not submission.removed:
        return Appeal.Ground.REJECTED
    return ""


@transaction.atomic
def appeal(*, by: User, submission: Submission, text: str) -> Appeal:
    """Object to a rejection or disqualification, once each.

    Raises NotAllowed for others, InvalidInput without a text, Conflict when there is nothing to object
    to or it was objected to before.
    """
    if not policies.can_appeal(by, submission):
        raise NotAllowed("submission.not_yours", "Only the author may appeal.")
    told = text.strip()
    if not told or len(told) > MAX_TEXT:
        raise InvalidInput("appeal.text", f"Say why, in at most {MAX_TEXT} characters.", field="text")
    ground = ground_of(submission)
    if not ground:
        raise Conflict(
            "appeal.no_ground",
            "Only a rejection or a disqualification can be appealed; "
            f"this is {submission.removed or submission.verdict or submission.state}.",
        )
    try:
        with transaction.atomic():
            made = Appeal.objects.create(submission=submission, author=by, ground=ground, text=told)
    except IntegrityError:
        raise Conflict("appeal.made_before", "You appealed this before; each is answered once.") from None
    audit("appeal.opened", submission, by, told, ground=ground)
    return made


@transaction.atomic
def answer_appeal(*, by: User, appeal: Appeal, upheld: bool, text: str) -> Appeal:
    """Answer an open appeal. Upholding a disqualification's appeal reinstates the submission.

    An upheld appeal of a rejection needs a re-score, which the caller orders in the same transaction.
    Raises NotAllowed, InvalidInput without a text, Conflict when it was answered before.
    """
    demand_reviewer(by)
    told = text.strip()
    if not told or len(told) > MAX_TEXT:
        raise InvalidInput(
            "appeal.answer",
            f"Write an answer, in at most {MAX_TEXT} characters: the author reads it.",
            field="answer",
        )
    state = Appeal.State.UPHELD if upheld else Appeal.State.DISMISSED
    waiting = Appeal.objects.filter(pk=appeal.pk, state=Appeal.State.OPEN)
    if not waiting.update(state=state, answer=told, answered_by=by, answered_at=timezone.now()):
        raise Conflict("appeal.answered", "It was answered before.")
    appeal.refresh_from_db()
    audit(f"appeal.{state}", appeal.submission, by, told, ground=appeal.ground)
    if upheld and appeal.submission.removed == Submission.Removed.DISQUALIFIED:
        _put_back(appeal.submission, by, "The appeal was upheld.")
    return appeal
