"""What the door may know of the hosts: which targets are served, and what every live host must refuse."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from evaluator.harness.samples import bundled_hashes
from evaluator.models import Attempt, Host, Share
from evaluator.queues import rhythm
from evaluator.selectors import able_hosts
from portal.submissions.models import Submission
from portal.submissions.serving import Evaluators, Refusal


def served() -> set[int]:
    """Primary keys of the targets with a host that is in service and was heard of within a lease."""
    since = timezone.now() - rhythm().lease
    live = Host.objects.filter(state=Host.State.ACTIVE, stopped_at=None, last_seen__gte=since)
    return set(live.values_list("target_id", flat=True))


def refusal(target_id: int, main_sha256: str) -> Refusal | None:
    """Why every live host of a target would refuse a file: none has a sandbox and the file is no bundled sample.

    None while no host is live: one with a sandbox may come.
    """
    told = [host.environment.get("isolation") or {} for host in able_hosts(target_id)]
    if not told or any(said.get("grade") != "none" for said in told) or main_sha256 in bundled_hashes():
        return None
    reasons = sorted({str(reason) for said in told for reason in said.get("reasons") or []})
    remedy = next((str(said["fix"]) for said in told if said.get("fix")), "")
    return Refusal(
        "No live host of this target can isolate a submission"
        + (f" ({'; '.join(reasons)})" if reasons else "")
        + ", so only the bundled samples (problems/samples/) are judged there. "
        + (
            f"Whoever runs the host lifts that with `{remedy}` and starts the evaluator again."
            if remedy
            else ""
        )
        + ("" if remedy else "Whoever runs the host must repair its sandbox and start the evaluator again."),
        remedy,
    )


def served_at(target_id: int) -> dict[int, datetime]:
    """When each author with something waiting for a target was last served on it."""
    waiting = Submission.objects.in_line().filter(target_id=target_id).order_by()
    shares = Share.objects.filter(target_id=target_id, user__in=waiting.values("author"))
    return dict(shares.values_list("user_id", "served_at"))


def is_lost(submission_id: UUID) -> bool:
    """Whether the open attempt at a submission outlived its lease: its host went silent and it is not reaped yet."""
    opened = Attempt.objects.filter(submission_id=submission_id, finished_at=None)
    return opened.filter(lease_expires_at__lt=timezone.now()).exists()


EVALUATORS = Evaluators(served=served, refusal=refusal, served_at=served_at, is_lost=is_lost)
