"""Numbers and names of the queue: one place for what hosts, ticker and tests agree on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

MAX_COUNTED_FAULTS = 3
"""The fault of ours at which a submission is given up as the cause."""

MAX_FAULTS_ANYWHERE = 6
"""Given up at this count even when every fault came from one of several hosts."""

PROTOCOLS = {"check": "check", "quick": "quick", "score": "paper", "profile": "profile"}
"""Submission mode to the protocol that the judge is asked for."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Seconds between signs of life, and how long silence is forgiven."""

    heartbeat_s: float
    lease_s: float
    tick_s: float
    watch_s: float

    @property
    def lease(self) -> timedelta:
        """How long one sign of life holds a lease."""
        return timedelta(seconds=self.lease_s)


def rhythm() -> Rhythm:
    """Return the rhythm in force: 15 s, 45 s, 30 s and 1 s unless the environment shortens it."""
    return Rhythm(
        heartbeat_s=settings.EVALUATOR_HEARTBEAT_S,
        lease_s=settings.EVALUATOR_LEASE_S,
        tick_s=settings.EVALUATOR_TICK_S,
        watch_s=settings.EVALUATOR_WATCH_S,
    )


def queue_name(target: str) -> str:
    """Name of the broker queue that hosts of a target listen to."""
    return f"score.{target}"
