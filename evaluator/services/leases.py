"""A host takes the next submission of its target, and keeps saying that it works on it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from evaluator.models import Attempt, Host, Rescore, Share
from evaluator.queues import MAX_COUNTED_FAULTS, rhythm
from evaluator.selectors import able_hosts, waiting_rescores
from evaluator.services.rescores import start_rescore
from portal.core.errors import StateConflict
from portal.submissions.models import Submission
from portal.submissions.states import ON_HOST, State
from portal.submissions.transitions import move

_LOOK_AHEAD = 8
_BEFORE_RUNNING = frozenset({"received", "starting", "building"})


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to judge one submission until ``Attempt.lease_expires_at``, renewed by heartbeats."""

    attempt_id: int
    token: uuid.UUID
    submission: Submission
    host_id: int


def lease(*, host: Host) -> Lease | None:
    """Take the next submission of the host's target; None when there is none or the host may not.

    Interactive goes before batch before re-score; within a lane the user who was served longest ago
    goes first, then the older submission. Two hosts never get the same row: the move out of ``queued``
    is a compare-and-set, and the database admits one live attempt per submission and per host.
    """
    for submission_id, author_id, rescore_id in [*_candidates(host), *_rescores(host)]:
        try:
            taken = _take(host, submission_id, author_id, rescore_id)
        except IntegrityError:
            return None  # this host holds a live attempt already, or the row has one
        if taken is not None:
            return taken
    return None


def _candidates(host: Host) -> list[tuple[uuid.UUID, int, int | None]]:
    """Return (submission, author) in the order of service, leaving out what this host keeps failing at."""
    served = Share.objects.filter(user=OuterRef("author"), target=host.target_id).values("served_at")[:1]
    queued = Submission.objects.filter(target_id=host.target_id, state=State.QUEUED)
    if able_hosts(host.target_id).exclude(pk=host.pk).exists():
        # Another host should have the last word before a submission is blamed for our faults.
        queued = queued.annotate(
            faults=Count("attempts", filter=Q(attempts__counted=True)),
            faults_here=Count("attempts", filter=Q(attempts__counted=True, attempts__host=host)),
        ).exclude(faults=F("faults_here"), faults__gte=MAX_COUNTED_FAULTS - 1)
    ordered = queued.annotate(served=Subquery(served)).order_by(
        "lane", F("served").asc(nulls_first=True), "queued_at", "id"
    )
    return [(pk, author, None) for pk, author in ordered.values_list("id", "author_id")[:_LOOK_AHEAD]]


def _rescores(host: Host) -> list[tuple[uuid.UUID, int, int | None]]:
    """Orders to judge again, the oldest first; they come after everything that has no verdict yet."""
    queued = waiting_rescores().filter(submission__target_id=host.target_id).order_by("created_at", "id")
    return list(queued.values_list("submission_id", "submission__author_id", "id")[:_LOOK_AHEAD])


def _take(host: Host, submission_id: uuid.UUID, author_id: int, rescore_id: int | None) -> Lease | None:
    now = timezone.now()
    with transaction.atomic():
        able = Host.objects.filter(pk=host.pk, session=host.session, state=Host.State.ACTIVE)
        if not able.update(last_seen=now):
            return None
        try:
            if rescore_id is None:
                move(submission_id=submission_id, to=State.BUILDING, expect={State.QUEUED}, stage="received")
            elif not start_rescore(rescore_id=rescore_id):
                return None
        except StateConflict:  # another host was faster, or its author cancelled
            return None
        attempt = Attempt.objects.create(
            submission_id=submission_id,
            rescore_id=rescore_id,
            host=host,
            number=_last_number(submission_id) + 1,
            leased_at=now,
            heartbeat_at=now,
            lease_expires_at=now + rhythm().lease,
            stage="received",
            stages=[{"stage": "received", "at": now.isoformat()}],
        )
        if rescore_id is None:  # who is judged again did not ask for it, and does not wait longer for it
            Share.objects.update_or_create(
                user_id=author_id, target_id=host.target_id, defaults={"served_at": now}
            )
    submission = Submission.objects.select_related("problem", "target").get(pk=submission_id)
    return Lease(
        attempt_id=attempt.pk, token=attempt.lease_token, submission=submission, host_id=attempt.host_id
    )


def _last_number(submission_id: uuid.UUID) -> int:
    found = Attempt.objects.filter(submission_id=submission_id).aggregate(last=Max("number"))
    return found["last"] or 0


def heartbeat(*, token: uuid.UUID) -> bool:
    """Renew a lease; False when it is no longer live, and then the work must stop."""
    now = timezone.now()
    live = Attempt.objects.filter(lease_token=token, finished_at=None)
    return bool(live.update(heartbeat_at=now, lease_expires_at=now + rhythm().lease))


def wanted(*, token: uuid.UUID) -> bool:
    """Whether the work under a lease is still wanted: the lease lives and nobody cancelled."""
    on_host = Q(submission__state__in=ON_HOST) | Q(rescore__state=Rescore.State.RUNNING)
    return Attempt.objects.filter(on_host, lease_token=token, finished_at=None).exists()


def set_stage(*, token: uuid.UUID, stage: str, detail: dict[str, Any] | None = None) -> bool:
    """Record that the judge entered a stage; False when the lease is no longer live.

    Only the holder of the lease writes these fields, so reading them first is safe.
    """
    now = timezone.now()
    with transaction.atomic():
        attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
        if attempt is None:
            return False
        stages = [*attempt.stages, _entry(stage, now, detail)]
        live = Attempt.objects.filter(pk=attempt.pk, finished_at=None)
        if not live.update(stage=stage, stages=stages):
            return False
        mine = Submission.objects.filter(pk=attempt.submission_id)
        if stage not in _BEFORE_RUNNING:
            mine.filter(state=State.BUILDING).update(state=State.RUNNING)
        mine.filter(state__in=ON_HOST).update(stage=stage)
    return True


def _entry(stage: str, at: datetime, detail: dict[str, Any] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"stage": stage, "at": at.isoformat()}
    if detail:
        entry["detail"] = detail
    return entry
