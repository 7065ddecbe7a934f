"""Celery tasks of the boards. Run a worker for them: ``celery -A portal worker -Q exports``."""

from __future__ import annotations

from celery import shared_task

from leaderboard import export_versions

QUEUE = "exports"


@shared_task(name="leaderboard.tasks.build_export", queue=QUEUE, ignore_result=True)
def build_export() -> None:
    """Build a version of the public data set, unless the last one still says it all. Idempotent."""
    export_versions.build()


def ask_for_export() -> None:
    """Send the order; raises OperationalError where no broker answers."""
    build_export.apply_async(queue=QUEUE, retry=False)
