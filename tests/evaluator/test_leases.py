"""Leases, heartbeats and how attempts end, on the database itself."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluator import queues, selectors, services
from evaluator.models import Attempt, Host, Share
from evaluator.signals import attempt_scored
from portal.submissions import line
from portal.submissions.models import Submission
from portal.submissions.states import State
from portal.submissions.transitions import move
from tests.evaluator import build

pytestmark = pytest.mark.django_db


def host(name: str = "one", target: str = "cpu4") -> Host:
    build.target(target)
    return services.register_host(name=name, target=target)


def take(on: Host) -> services.Lease:
    lease = services.lease(host=on)
    assert lease is not None
    return lease


def test_production_rhythm(settings) -> None:
    pace = queues.rhythm()
    assert (pace.heartbeat_s, pace.lease_s, pace.tick_s) == (15.0, 45.0, 30.0)
    # A dead host costs at most a lease and a tick: under the promised 90 s.
    assert pace.lease_s + pace.tick_s + pace.watch_s < 90


def test_lease_takes_the_row_and_moves_it() -> None:
    sent = build.submission()
    lease = take(host())
    sent.refresh_from_db()
    attempt = Attempt.objects.get(pk=lease.attempt_id)
    assert (sent.state, sent.stage) == ("building", "received")
    assert lease.submission.pk == sent.pk
    assert attempt.number == 1
    assert attempt.lease_expires_at - attempt.leased_at == timedelta(seconds=45)
    assert services.lease(host=host("two")) is None


def test_one_host_holds_one_lease() -> None:
    build.submission()
    waits = build.submission()
    one = host()
    take(one)
    with transaction.atomic():
        assert services.lease(host=one) is None
    waits.refresh_from_db()
    assert waits.state == "queued"


def test_database_refuses_a_second_live_attempt() -> None:
    lease = take(_with_work())
    now = timezone.now()
    with pytest.raises(IntegrityError), transaction.atomic():
        Attempt.objects.create(
            submission=lease.submission,
            host=host("two"),
            number=2,
            leased_at=now,
            heartbeat_at=now,
            lease_expires_at=now,
        )


def _with_work() -> Host:
    build.submission()
    return host()


def test_hosts_take_only_their_target() -> None:
    build.submission(target=build.card_target())
    assert services.lease(host=host()) is None


def test_lanes_go_before_age_and_fair_share_before_age() -> None:
    ann, bob = build.user("ann"), build.user("bob")
    old = timezone.now() - timedelta(hours=1)
    rescore = build.submission(author=ann, lane=2, queued_at=old)
    batch = build.submission(author=ann, lane=1, queued_at=old)
    ann1 = build.submission(author=ann, queued_at=old + timedelta(minutes=1))
    ann2 = build.submission(author=ann, queued_at=old + timedelta(minutes=2))
    bob1 = build.submission(author=bob, queued_at=old + timedelta(minutes=9))
    one = host()
    assert served(one) == [ann1.pk, bob1.pk, ann2.pk, batch.pk, rescore.pk]


def served(on: Host) -> list[uuid.UUID]:
    """What a host takes, one after the other, until nothing waits."""
    order = []
    while lease := services.lease(host=on):
        order.append(lease.submission.pk)
        assert services.complete(token=lease.token, result=build.result())
    return order


def test_one_file_of_a_second_author_does_not_wait_behind_ten_of_the_first(api, client) -> None:
    ann, bob = build.user("ann"), build.user("bob")
    one = host()
    build.submission(author=ann)
    take(one)  # ann had the latest turn
    of_ann = [build.submission(author=ann) for _ in range(10)]
    of_bob = build.submission(author=bob)
    assert api(bob).get(f"/api/v1/submissions/{of_bob.pk}/").json()["queue_position"] == 1
    assert "Place <strong>1</strong>" in client.get(f"/submissions/{of_bob.pk}/").content.decode()
    assert [line.place_of(row) for row in of_ann] == list(range(2, 12))
    assert [row.pk for row in selectors.upcoming(one.target_id)] == [of_bob.pk, of_ann[0].pk]


@pytest.mark.parametrize("seed", range(8))
def test_places_are_the_order_in_which_hosts_take(seed: int) -> None:
    draw = random.Random(seed)
    people = [build.user() for _ in range(4)]
    one, now = host(), timezone.now()
    for person in draw.sample(people, 3):  # the fourth never had a turn
        ago = timedelta(minutes=draw.randrange(60))
        Share.objects.create(user=person, target=one.target, served_at=now - ago)
    for at in range(12):
        queued = now - timedelta(seconds=99 - at)
        build.submission(author=draw.choice(people), lane=draw.randrange(2), queued_at=queued)
    build.submission(target=build.card_target())
    told = line.line_of(one.target_id)
    assert told == served(one)
    assert len(told) == 12


def test_heartbeat_renews_and_silence_is_reaped() -> None:
    lease = take(_with_work())
    start = timezone.now()
    with time_machine.travel(start + timedelta(seconds=40), tick=False):
        assert services.heartbeat(token=lease.token)
    with time_machine.travel(start + timedelta(seconds=80), tick=False):
        assert services.reap() == 0
    with time_machine.travel(start + timedelta(seconds=86), tick=False):
        assert services.reap() == 1
        assert services.reap() == 0
        assert not services.heartbeat(token=lease.token)
    lease.submission.refresh_from_db()
    assert lease.submission.state == "queued"
    assert Attempt.objects.get().exit_reason == "lease_lost"


def test_a_result_counts_only_with_the_live_lease(django_capture_on_commit_callbacks) -> None:
    one = _with_work()
    first = take(one)
    with time_machine.travel(timezone.now() + timedelta(seconds=50), tick=False):
        services.reap()
    second = take(host("two"))
    assert not services.complete(token=first.token, result=build.result(speedup=99.0))
    assert not services.set_stage(token=first.token, stage="timing")
    assert not services.fail_infra(token=first.token, fault="late")
    assert services.complete(token=second.token, result=build.result(speedup=2.0))
    assert not services.complete(token=second.token, result=build.result(speedup=99.0))
    assert not services.complete(token=uuid.uuid4(), result=build.result())
    scored = Attempt.objects.get(exit_reason="scored")
    assert (scored.number, scored.result["timing"]["speedup"]) == (2, 2.0)


def test_registering_again_gives_own_leases_back_at_once() -> None:
    one = _with_work()
    lease = take(one)
    again = services.register_host(name="one", target="cpu4")
    lease.submission.refresh_from_db()
    assert lease.submission.state == "queued"
    assert services.lease(host=one) is None, "the old session may not lease any more"
    assert not services.seen(host=one)
    assert take(again).submission.pk == lease.submission.pk


def test_complete_finishes_in_one_move_and_announces_on_commit(django_capture_on_commit_callbacks) -> None:
    heard = []

    def listen(attempt: Attempt, **_: object) -> None:
        heard.append((attempt.pk, Submission.objects.get(pk=attempt.submission_id).state))

    attempt_scored.connect(listen)
    try:
        lease = take(_with_work())
        with django_capture_on_commit_callbacks() as callbacks:
            services.complete(
                token=lease.token, result=build.result("incorrect"), log_text="hi", harness_version="7"
            )
        assert not heard
        for callback in callbacks:
            callback()
    finally:
        attempt_scored.disconnect(listen)
    assert heard == [(lease.attempt_id, "done")]
    row = Submission.objects.get()
    assert (row.verdict, row.code, row.message) == ("incorrect", "incorrect.example", "It went wrong.")
    attempt = Attempt.objects.get()
    assert (attempt.log, attempt.harness_version) == ("hi", "7")
    assert attempt.announced_at is not None


def test_a_listener_that_fails_is_told_again() -> None:
    calls = []

    def listen(attempt: Attempt, **_: object) -> None:
        calls.append(attempt.pk)
        if len(calls) == 1:
            raise RuntimeError("database away")

    lease = take(_with_work())
    services.complete(token=lease.token, result=build.result())
    attempt_scored.connect(listen)
    try:
        assert not services.announce(attempt_id=lease.attempt_id)
        assert services.announce_missed() == 0, "too fresh: the process that stored it may be at it"
        with time_machine.travel(timezone.now() + timedelta(seconds=6), tick=False):
            assert services.announce_missed() == 1
            assert services.announce_missed() == 0
    finally:
        attempt_scored.disconnect(listen)
    assert len(calls) == 2


def test_an_unknown_verdict_stores_nothing() -> None:
    lease = take(_with_work())
    with pytest.raises(ValueError, match="splendid"):
        services.complete(token=lease.token, result=build.result("splendid"))
    assert Attempt.objects.get().finished_at is None


def test_cancel_during_the_run_is_seen_and_no_result_stands() -> None:
    lease = take(_with_work())
    assert services.wanted(token=lease.token)
    move(submission_id=lease.submission.pk, to=State.CANCELLED)
    assert not services.wanted(token=lease.token)
    assert not services.complete(token=lease.token, result=build.result())
    attempt = Attempt.objects.get()
    assert (attempt.exit_reason, attempt.result) == ("cancelled", None)
    assert Submission.objects.get().state == "cancelled"


def test_stop_cancelled_closes_the_attempt() -> None:
    lease = take(_with_work())
    move(submission_id=lease.submission.pk, to=State.CANCELLED)
    assert services.stop_cancelled(token=lease.token)
    assert Attempt.objects.get().exit_reason == "cancelled"


def test_the_lease_of_a_cancelled_submission_is_reaped_without_a_requeue() -> None:
    lease = take(_with_work())
    move(submission_id=lease.submission.pk, to=State.CANCELLED)
    with time_machine.travel(timezone.now() + timedelta(seconds=46), tick=False):
        assert services.reap() == 1
    assert Submission.objects.get().state == "cancelled"


def test_stages_are_kept_with_times_and_move_the_state() -> None:
    lease = take(_with_work())
    for stage in ("building", "starting", "correctness"):
        assert services.set_stage(token=lease.token, stage=stage, detail={"size": "tiny"})
    attempt = Attempt.objects.get()
    assert [entry["stage"] for entry in attempt.stages] == ["received", "building", "starting", "correctness"]
    assert all("at" in entry for entry in attempt.stages)
    row = Submission.objects.get()
    assert (row.state, row.stage) == ("running", "correctness")


# --- faults of ours ------------------------------------------------------------------------------


def test_our_fault_is_retried_twice_and_keeps_its_place() -> None:
    one = _with_work()
    queued_at = Submission.objects.get().queued_at
    for _ in range(2):
        services.fail_infra(token=take(one).token, fault="disk full")
        row = Submission.objects.get()
        assert (row.state, row.verdict, row.queued_at) == ("queued", "", queued_at)
    services.fail_infra(token=take(one).token, fault="disk full")
    row = Submission.objects.get()
    assert (row.state, row.verdict) == ("done", "runtime_error")
    assert row.code == "runtime_error.host_fault_repeated"
    assert "3 times" in row.message
    assert [a.exit_reason for a in Attempt.objects.order_by("number")] == ["fault"] * 3


def test_faults_of_an_unfit_host_are_not_counted() -> None:
    one = _with_work()
    for _ in range(4):
        services.fail_infra(token=take(one).token, fault="broken card", counted=False)
    assert Submission.objects.get().state == "queued"


def test_a_quarantined_host_gets_nothing_until_reinstated() -> None:
    one = _with_work()
    services.quarantine(host=one, reason="self-test")
    assert services.lease(host=one) is None
    assert services.register_host(name="one", target="cpu4").state == "quarantined"
    one = Host.objects.get()
    services.reinstate(host=one)
    assert services.lease(host=one) is not None


def test_the_last_word_is_another_hosts_where_there_is_one() -> None:
    one = _with_work()
    two = host("two")
    for _ in range(2):
        services.fail_infra(token=take(one).token, fault="x")
    assert services.lease(host=one) is None, "two faults here: the other host has to try"
    services.fail_infra(token=take(two).token, fault="x")
    assert Submission.objects.get().code == "runtime_error.host_fault_repeated"


def test_release_counts_nothing() -> None:
    one = _with_work()
    for _ in range(5):
        assert services.release(token=take(one).token)
    assert Submission.objects.get().state == "queued"
    assert not Attempt.objects.filter(counted=True).exists()


def test_a_refusal_of_the_host_is_ours_to_say() -> None:
    lease = take(_with_work())
    assert services.refuse_on_host(token=lease.token, code="host.no_sandbox", message="Install bubblewrap.")
    row = Submission.objects.get()
    assert (row.verdict, row.code, row.message) == ("infra_error", "host.no_sandbox", "Install bubblewrap.")
    assert not Attempt.objects.get().counted


# --- what the status page reads ---------------------------------------------------------------------


def test_selectors_tell_hosts_and_queues() -> None:
    one = _with_work()
    build.submission(queued_at=timezone.now() - timedelta(seconds=60))
    take(one)
    found = selectors.hosts()
    assert [(h.name, h.target, h.alive, h.stage) for h in found] == [("one", "cpu4", True, "received")]
    assert found[0].busy_with is not None
    waiting = selectors.queues()
    assert [(q.target, q.waiting) for q in waiting] == [("cpu4", 1)]
    assert selectors.waiting_targets() == ["cpu4"]
    services.retire_host(host=one)
    assert selectors.hosts() == []
