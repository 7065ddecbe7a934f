"""Compute every stored figure that is due, after a deployment that changed the rules or a problem."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand

from leaderboard import cells, summaries
from leaderboard.models import BoardCell, RunSummary


class Command(BaseCommand):
    """Without it, the first reader of each page would wait for its figures."""

    help = "Compute all figures of the boards that are due, so that no reader has to wait for them."

    def handle(self, *args: Any, **options: Any) -> None:
        start = time.monotonic()
        counts = (
            RunSummary.objects.filter(summaries.due()).count(),
            BoardCell.objects.filter(cells.due()).count(),
        )
        summaries.ensure(RunSummary.objects.all())
        cells.ensure(BoardCell.objects.all())
        self.stdout.write(
            f"{counts[0]} runs and {counts[1]} boards computed in {time.monotonic() - start:.1f} s"
        )
