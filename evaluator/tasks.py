"""Celery tasks: the doorbell is all that goes through the broker."""

from __future__ import annotations

import logging

from celery import shared_task

from evaluator import selectors, services, worker
from portal.submissions.doorbell import ring

log = logging.getLogger(__name__)


@shared_task(name="evaluator.tasks.look", acks_late=False, ignore_result=True)
def look(*, target: str) -> None:
    """There is work for a target: the worker of this process leases until nothing is left.

    Acknowledged at once, because rows are the truth: a ring that is lost costs one tick.
    """
    current = worker.current()
    if current is None or current.target != target:
        log.warning("a ring for %s reached a process that does not judge for it", target)
        return
    current.drain()


def tick() -> None:
    """What the ticker does; any number of processes may do it at the same time."""
    taken_back = services.reap()
    if taken_back:
        log.warning("took back %d silent leases", taken_back)
    services.announce_missed()
    for target in selectors.waiting_targets():
        ring(target)
