"""Reads of the queue: who can judge, what waits, how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from evaluator import noise
from evaluator.models import Artifact, Attempt, Baseline, Host, Rescore
from evaluator.queues import rhythm
from portal.submissions.line import line_of
from portal.submissions.models import Submission
from portal.submissions.states import State


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One host as the status page shows it."""

    name: str
    target: str
    state: str
    alive: bool
    silent_s: float
    busy_with: str | None
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """What waits for one target."""

    target: str
    waiting: int
    oldest_wait_s: float
    rescores: int = 0


def able_hosts(target_id: int) -> QuerySet[Host]:
    """Hosts of a target that are in service and were heard of within a lease."""
    since = timezone.now() - rhythm().lease
    return Host.objects.filter(
        target_id=target_id, state=Host.State.ACTIVE, stopped_at=None, last_seen__gte=since
    )


def is_live(host: Host) -> bool:
    """Whether a host has not stopped and was heard of within a lease."""
    return host.stopped_at is None and timezone.now() - host.last_seen <= rhythm().lease


def hosts() -> list[HostStatus]:
    """All hosts that have not been stopped on purpose, by target and name."""
    now = timezone.now()
    live = {
        row["host_id"]: row
        for row in Attempt.objects.filter(finished_at=None).values("host_id", "submission_id", "stage")
    }
    found = []
    for host in (
        Host.objects.filter(stopped_at=None).select_related("target").order_by("target__slug", "name")
    ):
        silent = now - host.last_seen
        work = live.get(host.pk)
        found.append(
            HostStatus(
                name=host.name,
                target=host.target.slug,
                state=host.state,
                alive=is_live(host),
                silent_s=max(0.0, silent.total_seconds()),
                busy_with=str(work["submission_id"]) if work else None,
                stage=work["stage"] if work else "",
                reason=host.reason,
            )
        )
    return found


def queues() -> list[QueueStatus]:
    """What waits per target, first verdicts and second ones; targets without any are left out."""
    now = timezone.now()
    rows = (
        Submission.objects.filter(state=State.QUEUED)
        .values("target__slug")
        .annotate(waiting=Count("id"), oldest=Min("queued_at"))
        .order_by("target__slug")
    )
    counts = waiting_rescores().order_by().values_list("submission__target__slug")
    again = dict(counts.annotate(orders=Count("id")))
    found = {
        row["target__slug"]: QueueStatus(
            target=row["target__slug"],
            waiting=row["waiting"],
            oldest_wait_s=max(0.0, (now - row["oldest"]).total_seconds()) if row["oldest"] else 0.0,
            rescores=again.get(row["target__slug"], 0),
        )
        for row in rows
    }
    for slug, orders in again.items():
        found.setdefault(slug, QueueStatus(target=slug, waiting=0, oldest_wait_s=0.0, rescores=orders))
    return [found[slug] for slug in sorted(found)]


def upcoming(target_id: int, count: int = 2) -> list[Submission]:
    """What a target's hosts will take next, unless somebody joins the line before."""
    line = line_of(target_id)[:count]
    return sorted(
        Submission.objects.filter(pk__in=line).select_related("problem"), key=lambda row: line.index(row.pk)
    )


def waiting_targets(*, longer_than: timedelta = timedelta(0)) -> list[str]:
    """Targets with a submission that has waited longer than the given time."""
    before = timezone.now() - longer_than
    rows = Submission.objects.filter(state=State.QUEUED, queued_at__lte=before)
    again = waiting_rescores().filter(created_at__lte=before)
    return sorted(
        {
            *rows.values_list("target__slug", flat=True),
            *again.values_list("submission__target__slug", flat=True),
        }
    )


def waiting_rescores() -> QuerySet[Rescore]:
    """Orders to judge again that a host may take up: not those of what was removed since."""
    return Rescore.objects.filter(state=Rescore.State.QUEUED, submission__removed="")


def noise_floor(*, problem_id: int, host_id: int) -> float:
    """The relative noise floor of a problem on a host; 10 % until 20 comparisons exist."""
    pool = Baseline.objects.filter(problem_id=problem_id, host_id=host_id).order_by("-at", "-id")
    return noise.floor_of(list(pool.values_list("log_ratio", flat=True)[: noise.POOL]))


def result_attempt(submission_id: UUID) -> Attempt | None:
    """The attempt whose result stands for a submission, with its host; confirmations only bear witness."""
    scored = Attempt.objects.filter(submission_id=submission_id, exit_reason=Attempt.Exit.SCORED)
    verdicts = scored.exclude(rescore__kind=Rescore.Kind.CONFIRM)
    return verdicts.select_related("host").order_by("-number").first()


def artifact(submission_id: UUID, name: str) -> Artifact | None:
    """A file kept beside the result that stands for a submission."""
    attempt = result_attempt(submission_id)
    return None if attempt is None else Artifact.objects.filter(attempt=attempt, name=name).first()


def last_attempt(submission_id: UUID) -> Attempt | None:
    """The newest attempt at a submission, with its host."""
    return (
        Attempt.objects.filter(submission_id=submission_id).select_related("host").order_by("-number").first()
    )
