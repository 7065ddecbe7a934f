"""Many hosts at once on one database, with real transactions: each row is judged once, none is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connections

from evaluator import services
from evaluator.models import Attempt, Host
from portal.submissions.models import Submission
from portal.submissions.states import State
from portal.submissions.transitions import move
from tests.evaluator import build

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def together(*work: Callable[[], None]) -> list[Exception]:
    """Run each piece in a thread of its own, all released at one moment; return what they raised."""
    start = threading.Barrier(len(work))
    errors: list[Exception] = []

    def go(piece: Callable[[], None]) -> None:
        try:
            start.wait(10)
            piece()
        except Exception as error:  # noqa: BLE001 (handed to the test)
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=go, args=(piece,)) for piece in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def hosts(count: int) -> list[Host]:
    build.target()
    return [services.register_host(name=f"host-{n}", target="cpu4") for n in range(count)]


def test_racing_hosts_share_the_queue_without_overlap() -> None:
    rows = [build.submission() for _ in range(12)]
    done: list[object] = []

    def drain(host: Host) -> Callable[[], None]:
        def work() -> None:
            while True:
                lease = services.lease(host=host)
                if lease is None:
                    if not Submission.objects.filter(state=State.QUEUED).exists():
                        return
                    continue
                # slower than the reference: a new best would be judged a second time
                assert services.complete(token=lease.token, result=build.result(speedup=0.9))
                done.append(lease.submission.pk)

        return work

    assert together(*[drain(host) for host in hosts(4)]) == []
    assert Counter(done) == Counter(row.pk for row in rows)
    assert Attempt.objects.count() == 12
    assert Submission.objects.filter(state="done", verdict="correct").count() == 12


def test_reaping_and_completing_at_once_leaves_one_outcome() -> None:
    for _ in range(8):
        row = build.submission()
        host = hosts(1)[0]
        lease = services.lease(host=host)
        assert lease is not None
        Attempt.objects.filter(pk=lease.attempt_id).update(lease_expires_at="2020-01-01T00:00:00Z")
        outcome: dict[str, object] = {}

        def complete(lease: services.Lease = lease, outcome: dict[str, object] = outcome) -> None:
            outcome["stored"] = services.complete(token=lease.token, result=build.result())

        def reap(outcome: dict[str, object] = outcome) -> None:
            outcome["reaped"] = services.reap()

        assert together(complete, reap) == []
        row.refresh_from_db()
        if outcome["stored"]:
            assert (outcome["reaped"], row.state) == (0, "done")
        else:
            assert (outcome["reaped"], row.state) == (1, "queued")
        Submission.objects.filter(pk=row.pk, state="queued").update(state="cancelled")


def test_cancelling_and_completing_at_once_leaves_one_outcome() -> None:
    for _ in range(8):
        row = build.submission()
        lease = services.lease(host=hosts(1)[0])
        assert lease is not None
        stored: list[object] = []
        complete = lambda lease=lease, stored=stored: stored.append(  # noqa: E731
            services.complete(token=lease.token, result=build.result())
        )
        cancel = lambda row=row: move(submission_id=row.pk, to=State.CANCELLED)  # noqa: E731
        errors = together(complete, cancel)
        row.refresh_from_db()
        attempt = Attempt.objects.get(pk=lease.attempt_id)
        if row.state == "done":
            assert stored == [True]
            assert [type(e).__name__ for e in errors] == ["StateConflict"]
        else:
            assert (row.state, stored, errors) == ("cancelled", [False], [])
            assert attempt.result is None
