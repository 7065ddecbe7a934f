"""Take a host out of service and put it back."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from evaluator import selectors, services
from evaluator.models import Attempt, Host


def _word(host: Host) -> str:
    """Return what a host is now: its state says only what an operator wants of it."""
    if selectors.is_live(host):
        return host.state
    gone = "stopped" if host.stopped_at else "silent"
    return gone if host.state == Host.State.ACTIVE else f"{gone},{host.state}"


class Command(BaseCommand):
    """List hosts, or change the state of one."""

    requires_system_checks = ()
    help = (
        "List evaluator hosts (active, draining, quarantined; stopped or silent), or change the state of one."
    )

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
                silent = max(0, int((timezone.now() - host.last_seen).total_seconds()))
                self.stdout.write(
                    f"{host.name} {host.target.slug} {_word(host)} leases={busy} "
                    f"seen={host.last_seen:%Y-%m-%dT%H:%M:%SZ} ({silent} s ago) {host.reason}".rstrip()
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
