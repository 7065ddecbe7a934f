"""Run the evaluator's worker on this machine."""

from __future__ import annotations

import socket
from typing import Any

from celery import current_app
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluator import worker
from evaluator.tasks import tick
from problems.models import Target


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
            raise CommandError(
                f"There is no target {target!r}. Run `manage.py sync_catalog` first."
            ) from None
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
