"""Orders to judge a finished submission once more: given, taken up, ended."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluator.models import Attempt, Rescore
from portal.core.errors import Conflict
from portal.submissions.doorbell import ring
from portal.submissions.models import Submission
from portal.submissions.states import State, Verdict
from portal.submissions.transitions import rejudge

OPEN = (Rescore.State.QUEUED, Rescore.State.RUNNING)


def order_rescore(*, submission: Submission, kind: str, reason: str = "", by: Any = None) -> Rescore:
    """Queue one more judging of a submission; the open order when there is one.

    An open confirmation becomes an order when one is asked for, as long as no host has taken it up.
    Raises Conflict for what is not done, was removed, never got a verdict because of us, or is being confirmed now.
    """
    if not submission.source:
        raise Conflict("rescore.no_source", "Its author deleted their account; there is no source to judge.")
    if submission.state != State.DONE or submission.verdict == Verdict.INFRA_ERROR or submission.removed:
        raise Conflict("rescore.not_possible", "Only a finished submission that stands can be scored again.")
    try:
        with transaction.atomic():
            made = Rescore.objects.create(
                submission=submission,
                kind=kind,
                reason=reason[:300],
                requested_by=by,
                created_at=timezone.now(),
            )
    except IntegrityError:
        open_ones = Rescore.objects.filter(submission=submission, state__in=OPEN)
        if kind == Rescore.Kind.ORDER:
            open_ones.filter(state=Rescore.State.QUEUED).update(
                kind=kind, reason=reason[:300], requested_by=by
            )
        found = open_ones.first()
        if found is None:  # it ended a moment ago; the next ask makes a new one
            raise Conflict("rescore.just_ended", "One has just ended. Ask again.") from None
        if kind == Rescore.Kind.ORDER != found.kind:
            told = "It is being measured a second time at this moment. Ask again once that has ended."
            raise Conflict("rescore.being_confirmed", told) from None
        return found
    transaction.on_commit(lambda: ring(submission.target.slug))
    return made


def start_rescore(*, rescore_id: int) -> bool:
    """Take up a queued order; False when another host was faster."""
    queued = Rescore.objects.filter(pk=rescore_id, state=Rescore.State.QUEUED)
    return bool(queued.update(state=Rescore.State.RUNNING))


def requeue_rescore(*, rescore_id: int) -> None:
    """Put a running order back, after a fault of ours or a released lease."""
    Rescore.objects.filter(pk=rescore_id, state=Rescore.State.RUNNING).update(state=Rescore.State.QUEUED)


def end_rescore(*, rescore_id: int, failed: bool = False) -> None:
    """End a running order."""
    state = Rescore.State.FAILED if failed else Rescore.State.DONE
    running = Rescore.objects.filter(pk=rescore_id, state=Rescore.State.RUNNING)
    running.update(state=state, finished_at=timezone.now())


def finish_rescored(*, attempt: Attempt, verdict: Verdict, code: str, message: str) -> None:
    """End the order of a scored attempt; an ``order`` replaces the submission's verdict.

    Call it inside the transaction that stores the result. Raises StateConflict.
    """
    rescore = Rescore.objects.get(attempts=attempt)
    end_rescore(rescore_id=rescore.pk)
    if rescore.kind == Rescore.Kind.ORDER:
        rejudge(
            submission_id=attempt.submission_id,
            verdict=verdict,
            code=code[:80],
            message=message,
            reason=rescore.reason,
        )
