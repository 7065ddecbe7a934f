"""`manage.py sync_catalog`: make the database agree with the catalogue on disk."""

from typing import Any

from django.core.management.base import BaseCommand

from problems.services import sync_catalog


class Command(BaseCommand):
    """Safe to run at any time and as often as wanted."""

    help = "Load problems and targets from problems/catalog and problems/targets into the database."

    def handle(self, *args: Any, **options: Any) -> None:
        """Sync and say what is there now."""
        done = sync_catalog()
        self.stdout.write(f"{len(done.problems)} problems, {len(done.targets)} targets")
        if done.retired:
            self.stdout.write(f"retired: {', '.join(done.retired)}")
