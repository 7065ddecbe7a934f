"""Judging again: after first verdicts, without touching what is there until it is done."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from evaluator import selectors, services
from evaluator.models import Attempt, Rescore
from portal.core.errors import Conflict
from portal.submissions.models import Submission
from tests.evaluator import build

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


def done(**fields: object) -> Submission:
    return build.submission(state="done", verdict="correct", **fields)


def host(name: str = "h"):
    return services.register_host(name=name, target="cpu4")


def test_first_verdicts_come_before_second_ones() -> None:
    old = done()
    services.order_rescore(submission=old, kind="order")
    new = build.submission(lane=Submission.Lane.BATCH)
    first = services.lease(host=(one := host()))
    assert first is not None
    assert first.submission == new
    services.complete(token=first.token, result=build.result(speedup=0.9))
    second = services.lease(host=one)
    assert second is not None
    assert second.submission == old
    old.refresh_from_db()
    assert (old.state, old.verdict) == ("done", "correct")


def test_one_open_order_at_a_time_and_a_confirmation_becomes_an_order() -> None:
    row = done()
    first = services.order_rescore(submission=row, kind="confirm")
    again = services.order_rescore(submission=row, kind="order", reason="asked")
    assert (again.pk, again.kind) == (first.pk, "order")
    assert services.order_rescore(submission=row, kind="confirm").kind == "order"


def test_an_order_is_not_taken_for_the_confirmation_that_runs() -> None:
    row = done()
    running = services.order_rescore(submission=row, kind="confirm")
    Rescore.objects.filter(pk=running.pk).update(state="running")
    with pytest.raises(Conflict, match="Ask again") as refused:
        services.order_rescore(submission=row, kind="order")
    assert refused.value.code == "rescore.being_confirmed"
    Rescore.objects.filter(pk=running.pk).update(state="done", finished_at=timezone.now())
    assert services.order_rescore(submission=row, kind="order").pk != running.pk


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "queued", "verdict": ""},
        {"verdict": "infra_error"},
        {"verdict": "correct", "removed": "withdrawn", "removed_at": "2026-01-01T00:00:00Z"},
    ],
)
def test_what_cannot_be_judged_again(fields: dict[str, str]) -> None:
    with pytest.raises(Conflict):
        services.order_rescore(submission=build.submission(**({"state": "done"} | fields)), kind="order")


def test_only_one_host_takes_it_up() -> None:
    row = done()
    services.order_rescore(submission=row, kind="order")
    assert services.lease(host=host("a")) is not None
    assert services.lease(host=host("b")) is None
    assert selectors.waiting_targets() == []


def test_a_lost_lease_puts_it_back_and_the_third_fault_ends_it_with_the_old_verdict() -> None:
    row = done()
    services.order_rescore(submission=row, kind="order")
    assert selectors.waiting_targets() == ["cpu4"]
    one = host()
    for turn in range(3):
        lease = services.lease(host=one)
        assert lease is not None, turn
        assert services.wanted(token=lease.token)
        assert services.fail_infra(token=lease.token, fault="ours")
    assert services.lease(host=one) is None
    assert Rescore.objects.get().state == "failed"
    row.refresh_from_db()
    assert (row.state, row.verdict) == ("done", "correct")


def test_the_status_page_counts_them_apart(client: Client) -> None:
    services.order_rescore(submission=done(), kind="order")
    (row,) = selectors.queues()
    assert (row.target, row.waiting, row.rescores) == ("cpu4", 0, 1)
    build.submission()
    (row,) = selectors.queues()
    assert (row.waiting, row.rescores) == (1, 1)
    assert "To be scored again" in client.get("/status/").content.decode()


def test_a_released_lease_costs_nothing() -> None:
    services.order_rescore(submission=done(), kind="order")
    one = host()
    lease = services.lease(host=one)
    assert lease is not None
    services.release(token=lease.token)
    assert Rescore.objects.get().state == "queued"
    assert services.lease(host=one) is not None


def test_a_host_without_a_sandbox_ends_it_with_the_old_verdict() -> None:
    row = done()
    services.order_rescore(submission=row, kind="order")
    lease = services.lease(host=host())
    assert lease is not None
    assert services.refuse_on_host(token=lease.token, code="host.no_sandbox", message="none")
    assert Rescore.objects.get().state == "failed"
    row.refresh_from_db()
    assert row.verdict == "correct"


@pytest.mark.parametrize(("kind", "verdict"), [("confirm", "correct"), ("order", "incorrect")])
def test_an_order_replaces_the_verdict_a_confirmation_does_not(kind: str, verdict: str) -> None:
    row = done()
    services.order_rescore(submission=row, kind=kind)
    lease = services.lease(host=host())
    assert lease is not None
    services.complete(token=lease.token, result=build.result("incorrect"))
    row.refresh_from_db()
    assert row.verdict == verdict
    assert Rescore.objects.get().state == "done"
    standing = selectors.result_attempt(row.pk)
    assert (standing is None) == (kind == "confirm")


def test_the_scan_is_kept_beside_the_result_and_runs_once() -> None:
    build.submission("import socket\n\ndef solution(tensor):\n    return tensor\n")
    lease = services.lease(host=host())
    assert lease is not None
    services.complete(token=lease.token, result=build.result(speedup=0.9))
    attempt = Attempt.objects.get()
    assert [flag["code"] for flag in services.record_triage(attempt=attempt)] == ["opens_sockets"]
    Attempt.objects.update(triage=[])
    attempt.refresh_from_db()
    assert services.record_triage(attempt=attempt) == []
