"""Take in results of our harness that were made elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.imports import files_of, import_file


class Command(BaseCommand):
    """They are shown as "imported, not re-run here" and take no place; importing twice changes nothing."""

    help = "Import results of the harness (files, or folders of .json files) as `imported, not re-run here`."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, help="files or folders")
        parser.add_argument("--quiet", action="store_true", help="only what was refused, and the totals")

    def handle(self, *args: Any, **options: Any) -> None:
        counts: Counter[str] = Counter()
        files = files_of(options["paths"])
        for path in files:
            for told in import_file(path):
                counts[told.state] += told.rows
                if told.state == "refused" or not options["quiet"]:
                    self.stdout.write(str(told))
        self.stdout.write(
            f"{len(files)} files: {counts['imported']} imported, {counts['known']} known before, "
            f"{counts['left out']} left out, {counts['refused']} refused"
        )
        if counts["refused"] or not files:
            raise CommandError("Not everything was imported; the lines above say why.")
