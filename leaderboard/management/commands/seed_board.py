"""Invented rows for load and layout work, in a database of their own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluator.models import Attempt
from leaderboard import bulk
from leaderboard.models import Score
from leaderboard.synthetic import Seeder
from portal.submissions.models import Submission
from problems.models import Target


class Command(BaseCommand):
    """Fill a database whose name contains "seed" with synthetic models, runs and scores."""

    help = "Create labelled synthetic rows. The database's name (or PKB_VAR) must contain 'seed'."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--models", type=int, default=30)
        parser.add_argument("--samples", type=int, default=3)
        parser.add_argument("--runs", type=int, default=1, help="runs per model")
        parser.add_argument("--targets", default="h100x4", help="comma-separated slugs")
        parser.add_argument("--seed", type=int, default=1)

    def handle(self, *args: Any, **options: Any) -> None:
        name = str(settings.DATABASES["default"]["NAME"])
        if not settings.SYNTHETIC_ROWS:
            raise CommandError("Synthetic rows are never made under production settings.")
        if "seed" not in name:
            raise CommandError(
                f"The database {name} is not one for synthetic rows. Set DATABASE_URL or PKB_VAR to one "
                "whose name contains 'seed'."
            )
        call_command("migrate", verbosity=0)
        call_command("sync_catalog", verbosity=0, stdout=self.stdout)
        self._seed(options)
        call_command("refresh_boards", stdout=self.stdout)

    def _seed(self, options: dict[str, Any]) -> None:
        seeder = Seeder(options["seed"])
        targets = [Target.objects.get(slug=slug) for slug in options["targets"].split(",")]
        total = 0
        with bulk.unchecked(Submission, Attempt, Score):
            for number in range(options["models"]):
                model = seeder.model(number)
                agentic = number % 5 == 4
                for turn in range(options["runs"]):
                    run = seeder.run(model, turn + number % 3, agentic=agentic, verified=number % 10 != 9)
                    for target in targets:
                        steps = 6 if agentic else 1
                        total += seeder.fill(run, target, 1 if agentic else options["samples"], steps=steps)
                self.stdout.write(f"{number + 1} of {options['models']} models, {total} submissions")
            seeder.write()
        seeder.finish()
