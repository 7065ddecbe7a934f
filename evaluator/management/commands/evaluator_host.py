"""Take a host out of service and put it back."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluator import services
from evaluator.models import Attempt, Host


class Command(BaseCommand):
    """List hosts, or change the state of one."""

    requires_system_checks = ()
    help = "List evaluator hosts, or drain, quarantine or resume one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", help="name of the host; left out: list them")
        parser.add_argument("action", nargs="?", choices=("drain", "quarantine", "resume"))
        parser.add_argument("--reason", default="by an operator", help="kept with the host")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["name"] and options["action"]:
            self._change(options["name"], options["action"], options["reason"])
        for host in Host.objects.select_related("target").order_by("name"):
            if options["name"] in (None, host.name):
                busy = Attempt.objects.filter(host=host, finished_at=None).count()
                self.stdout.write(
                    f"{host.name} {host.target.slug} {host.state} leases={busy} "
                    f"seen={host.last_seen:%Y-%m-%d %H:%M:%S} {host.reason}".rstrip()
                )

    def _change(self, name: str, action: str, reason: str) -> None:
        try:
            host = Host.objects.get(name=name)
        except Host.DoesNotExist:
            raise CommandError(f"There is no host {name!r}.") from None
        if action == "drain":
            services.drain(host=host, reason=reason)
        elif action == "quarantine":
            services.quarantine(host=host, reason=reason)
        else:
            services.reinstate(host=host)
