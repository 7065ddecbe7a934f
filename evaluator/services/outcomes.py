"""How an attempt ends: scored, cancelled, given back, or by a fault of ours."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from evaluator.models import Attempt
from evaluator.queues import MAX_COUNTED_FAULTS, MAX_FAULTS_ANYWHERE
from evaluator.selectors import able_hosts
from evaluator.services.rescores import end_rescore, finish_rescored, requeue_rescore
from evaluator.signals import attempt_scored
from portal.core.errors import StateConflict
from portal.submissions.states import ON_HOST, State, Verdict
from portal.submissions.transitions import move

log = logging.getLogger(__name__)

_ANNOUNCE_AFTER = timedelta(seconds=5)
_GIVEN_UP = (
    "Our evaluator failed {count} times while judging this, and passed its own test each time. "
    "Check that the file leaves processes, files and memory of the machine alone."
)


def complete(
    *, token: uuid.UUID, result: dict[str, Any], log_text: str = "", harness_version: str = ""
) -> bool:
    """Store the result of a live lease and finish its submission, in one transaction.

    Returns False, with nothing stored, when the lease is no longer live or the submission was
    cancelled. ``result`` needs ``verdict``, ``code`` and ``message``; an unknown verdict is a ValueError.
    """
    verdict = Verdict(result["verdict"])
    now = timezone.now()
    with transaction.atomic():
        attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
        if attempt is None:
            return False
        ended = _live(attempt).update(
            finished_at=now,
            exit_reason=Attempt.Exit.SCORED,
            result=result,
            log=log_text,
            harness_version=harness_version[:40],
        )
        if not ended:
            return False
        try:
            _finish_attempt(attempt, verdict, result.get("code", ""), result.get("message", ""))
        except StateConflict:  # its author cancelled while the last stage ran
            Attempt.objects.filter(pk=attempt.pk).update(
                exit_reason=Attempt.Exit.CANCELLED, result=None, log=""
            )
            return False
        transaction.on_commit(lambda: announce(attempt_id=attempt.pk))
    return True


def announce(*, attempt_id: int) -> bool:
    """Tell the boards of a stored result; False when a listener failed, and then the ticker tells again."""
    attempt = Attempt.objects.select_related(
        "submission__run__entrant", "submission__problem", "submission__target", "host"
    ).get(pk=attempt_id)
    replies = attempt_scored.send_robust(sender=Attempt, attempt=attempt)
    failures = [reply for _, reply in replies if isinstance(reply, Exception)]
    for failure in failures:
        log.error("attempt %s did not reach a listener", attempt_id, exc_info=failure)
    if failures:
        return False
    Attempt.objects.filter(pk=attempt_id, announced_at=None).update(announced_at=timezone.now())
    return True


def announce_missed(*, limit: int = 100) -> int:
    """Tell the boards of results that were stored but not announced (the process died in between)."""
    late = Attempt.objects.filter(
        exit_reason=Attempt.Exit.SCORED,
        announced_at=None,
        finished_at__lt=timezone.now() - _ANNOUNCE_AFTER,
    ).order_by("finished_at")
    return sum(announce(attempt_id=pk) for pk in late.values_list("pk", flat=True)[:limit])


def fail_infra(*, token: uuid.UUID, fault: str, counted: bool = True) -> bool:
    """End a live lease by a fault of ours; the submission goes back to the queue, twice.

    ``counted`` is False when the host failed its self-test: then the fault says nothing about the
    submission. The third counted fault (on two hosts where there are two) ends it as
    ``runtime_error.host_fault_repeated``. False when the lease is no longer live.
    """
    attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
    if attempt is None:
        return False
    return end_with_fault(attempt, exit_reason=Attempt.Exit.FAULT, fault=fault, counted=counted)


def release(*, token: uuid.UUID) -> bool:
    """Give a lease back unharmed (the host is shutting down): first in line again, nothing counted."""
    attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
    if attempt is None:
        return False
    return end_with_fault(attempt, exit_reason=Attempt.Exit.RELEASED, fault="", counted=False)


def refuse_on_host(*, token: uuid.UUID, code: str, message: str) -> bool:
    """End a submission that no host of this kind may run; ours to say, so it is never charged."""
    with transaction.atomic():
        attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
        if attempt is None or not _end(attempt, Attempt.Exit.FAULT, message, counted=False):
            return False
        if attempt.rescore_id is not None:
            end_rescore(rescore_id=attempt.rescore_id, failed=True)
            return True
        try:
            _finish(attempt.submission_id, Verdict.INFRA_ERROR, code, message)
        except StateConflict:
            log.info("submission %s is not refused: it was cancelled", attempt.submission_id)
    return True


def stop_cancelled(*, token: uuid.UUID) -> bool:
    """End the attempt of a submission that its author cancelled."""
    attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
    return attempt is not None and _end(attempt, Attempt.Exit.CANCELLED, "", counted=False)


def reap() -> int:
    """Take back the leases that went silent and close the attempts of cancelled submissions.

    Safe to run anywhere at any time: each attempt is ended by a compare-and-set.
    """
    now = timezone.now()
    silent = Attempt.objects.filter(finished_at=None, lease_expires_at__lt=now)
    count = 0
    for attempt in silent.select_related("submission"):
        count += end_with_fault(
            attempt,
            exit_reason=Attempt.Exit.LEASE_LOST,
            fault="The evaluator went silent while it worked on this.",
            counted=True,
            only=Q(lease_expires_at__lt=now),
        )
    return count


def end_with_fault(
    attempt: Attempt, *, exit_reason: str, fault: str, counted: bool, only: Q | None = None
) -> bool:
    """End a live attempt without a result and put its submission back, or give it up."""
    with transaction.atomic():
        if not _end(attempt, exit_reason, fault, counted=counted, only=only):
            return False
        faults = Attempt.objects.filter(
            submission_id=attempt.submission_id, rescore=attempt.rescore, counted=True
        )
        if counted and _is_last(attempt, faults.count(), faults.values("host").distinct().count()):
            _give_up(attempt, faults.count())
        else:
            _requeue(attempt)
    return True


def _give_up(attempt: Attempt, count: int) -> None:
    if attempt.rescore_id is not None:  # the verdict that was there stays
        end_rescore(rescore_id=attempt.rescore_id, failed=True)
        return
    submission_id, message = attempt.submission_id, _GIVEN_UP.format(count=count)
    try:
        _finish(submission_id, Verdict.RUNTIME_ERROR, "runtime_error.host_fault_repeated", message)
    except StateConflict:
        log.info("submission %s is not given up: it was cancelled", submission_id)


def _requeue(attempt: Attempt) -> None:
    if attempt.rescore_id is not None:
        requeue_rescore(rescore_id=attempt.rescore_id)
        return
    try:
        move(submission_id=attempt.submission_id, to=State.QUEUED, expect=ON_HOST)
    except StateConflict:
        log.info("submission %s is not taken up again: it was cancelled", attempt.submission_id)


def _is_last(attempt: Attempt, faults: int, hosts: int) -> bool:
    """Whether this fault is the one after which we stop trying."""
    if faults < MAX_COUNTED_FAULTS:
        return False
    if hosts > 1 or faults >= MAX_FAULTS_ANYWHERE:
        return True
    others = able_hosts(attempt.submission.target_id).exclude(pk=attempt.host_id)
    return not others.exists()


def _live(attempt: Attempt) -> Any:
    return Attempt.objects.filter(pk=attempt.pk, lease_token=attempt.lease_token, finished_at=None)


def _end(attempt: Attempt, exit_reason: str, fault: str, *, counted: bool, only: Q | None = None) -> bool:
    rows = _live(attempt) if only is None else _live(attempt).filter(only)
    return bool(
        rows.update(finished_at=timezone.now(), exit_reason=exit_reason, fault=fault[:500], counted=counted)
    )


def _finish_attempt(attempt: Attempt, verdict: Verdict, code: str, message: str) -> None:
    if attempt.rescore_id is None:
        _finish(attempt.submission_id, verdict, code, message)
    else:
        finish_rescored(attempt=attempt, verdict=verdict, code=code, message=message)


def _finish(submission_id: uuid.UUID, verdict: Verdict, code: str, message: str) -> None:
    """Move a submission that is on a host to done; StateConflict when it is not on a host."""
    move(
        submission_id=submission_id,
        to=State.DONE,
        expect=ON_HOST,
        verdict=verdict,
        code=code[:80],
        message=message,
    )
