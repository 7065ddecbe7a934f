"""Build a version of the public data set here, or ask a worker to."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from leaderboard import export_versions, tasks


class Command(BaseCommand):
    """What the button on the export page does."""

    help = "Build a version of the public data set: JSON lines, Parquet and data card."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--later", action="store_true", help="leave it to a worker of the queue 'exports'"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["later"]:
            tasks.ask_for_export()
            self.stdout.write("asked a worker")
            return
        version = export_versions.build()
        self.stdout.write(f"{version}: {version.scores} scores, {version.runs} rows of runs")
