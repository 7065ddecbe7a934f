"""Run the evaluator's worker on this machine."""

from __future__ import annotations

import socket
from typing import Any

from celery import current_app
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluator import worker
from evaluator.harness.errors import NoCards
from evaluator.tasks import tick
from problems.models import Target
from problems.registry import target_names


class Command(BaseCommand):
    """Register this machine as a host of a target and judge what is queued for it, until stopped."""

    requires_system_checks = ()  # an evaluator host serves no pages
    help = "Judge submissions for one target on this machine, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--target", required=True, help="slug of the target, e.g. cpu4")
        parser.add_argument("--name", default="", help="name of this host (default: its host name)")

    def handle(self, *args: Any, **options: Any) -> None:
        target = options["target"]
        try:
            worker.run(
                app=current_app,
                target=target,
                name=options["name"] or f"{socket.gethostname()}-{target}",
                tick=tick,
                self_test=worker.reference_self_test(target),
            )
        except Target.DoesNotExist:
            raise CommandError(_unknown(target)) from None
        except (ImproperlyConfigured, NoCards) as error:
            raise CommandError(str(error)) from None


def _unknown(target: str) -> str:
    """A target of the catalogue that the database lacks waits for sync_catalog; any other name is a slip."""
    if target in target_names():
        return f"The database does not hold target {target!r} yet. Run `manage.py sync_catalog` first."
    return f"There is no target {target!r}. Targets: {', '.join(target_names())}."
