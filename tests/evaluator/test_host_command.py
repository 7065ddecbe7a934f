"""`manage.py evaluator_host`: hosts are listed, drained, quarantined and put back."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluator import services
from evaluator.models import Host
from evaluator.queues import rhythm
from tests.evaluator import build

pytestmark = pytest.mark.django_db


def run(*args: str) -> str:
    out = StringIO()
    call_command("evaluator_host", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def host() -> Host:
    build.target("cpu4")
    return services.register_host(name="one", target="cpu4")


def test_a_drained_host_takes_nothing_new_and_comes_back(host: Host) -> None:
    build.submission()

    assert "one cpu4 draining leases=0" in run("one", "drain", "--reason", "new driver")
    assert services.lease(host=host) is None

    assert "active" in run("one", "resume")
    assert services.lease(host=host) is not None


def test_quarantine_is_not_lifted_by_draining(host: Host) -> None:
    run("one", "quarantine")

    assert "quarantined" in run("one", "drain")


def test_hosts_are_listed(host: Host) -> None:
    services.register_host(name="two", target="cpu4")

    assert [line.split()[0] for line in run().splitlines()] == ["one", "two"]


def test_a_host_that_stopped_or_fell_silent_is_not_called_active(host: Host) -> None:
    assert "one cpu4 active leases=0" in run()

    Host.objects.update(last_seen=timezone.now() - rhythm().lease - timedelta(seconds=15))
    assert "one cpu4 silent leases=0" in run()
    assert "60 s ago)" in run()
    assert "one cpu4 silent,draining leases=0" in run("one", "drain")

    run("one", "resume")
    services.retire_host(host=host)
    assert "one cpu4 stopped leases=0" in run()


def test_an_unknown_name_is_said(host: Host) -> None:
    with pytest.raises(CommandError, match="no host 'three'"):
        run("three", "drain")
