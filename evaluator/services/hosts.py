"""Hosts come, say that they are alive, and go."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator.models import Attempt, Host
from evaluator.services.outcomes import end_with_fault
from problems.models import Target


def register_host(*, name: str, target: str, environment: dict[str, Any] | None = None) -> Host:
    """Register a host, or register it again, and return its row with a fresh session.

    A host that registers again has lost what it was doing: its leases go back to the queue at once.
    A quarantined or draining host keeps that state. Raises Target.DoesNotExist for a target that the
    catalogue does not hold.
    """
    now = timezone.now()
    with transaction.atomic():
        row = Target.objects.get(slug=target)
        fields = {
            "target": row,
            "session": uuid.uuid4(),
            "registered_at": now,
            "last_seen": now,
            "stopped_at": None,
            "environment": environment or {},
        }
        host, created = Host.objects.get_or_create(name=name, defaults=fields)
        if not created:
            Host.objects.filter(pk=host.pk).update(**fields)
            for attempt in Attempt.objects.filter(host=host, finished_at=None):
                end_with_fault(
                    attempt,
                    exit_reason=Attempt.Exit.LEASE_LOST,
                    fault="The evaluator was restarted while it worked on this.",
                    counted=True,
                )
            host.refresh_from_db()
    return host


def seen(*, host: Host) -> bool:
    """Note that a host is alive; False when somebody else has registered under its name since."""
    updated = Host.objects.filter(pk=host.pk, session=host.session).update(last_seen=timezone.now())
    return updated == 1


def quarantine(*, host: Host, reason: str) -> None:
    """Take a host out of service until somebody, or its own self-test, reinstates it."""
    Host.objects.filter(pk=host.pk).update(state=Host.State.QUARANTINED, reason=reason[:300])


def drain(*, host: Host, reason: str) -> None:
    """Let a host finish what it has and take nothing new; a quarantined one stays quarantined."""
    Host.objects.filter(pk=host.pk, state=Host.State.ACTIVE).update(
        state=Host.State.DRAINING, reason=reason[:300]
    )


def reinstate(*, host: Host) -> None:
    """Put a quarantined or draining host back into service."""
    Host.objects.filter(pk=host.pk).exclude(state=Host.State.ACTIVE).update(
        state=Host.State.ACTIVE, reason=""
    )


def reinstate_fit(*, host: Host, reason: str) -> None:
    """Put a host back that left service for a reason that begins so, and for no other."""
    quarantined = Host.objects.filter(pk=host.pk, state=Host.State.QUARANTINED)
    quarantined.filter(reason__startswith=reason).update(state=Host.State.ACTIVE, reason="")


def retire_host(*, host: Host) -> None:
    """Say that a host has stopped on purpose: it is no longer counted among those that can judge."""
    Host.objects.filter(pk=host.pk, session=host.session).update(
        session=uuid.uuid4(), stopped_at=timezone.now()
    )
