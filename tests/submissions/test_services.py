"""submit, cancel, open: each whole or not at all, on SQLite and on PostgreSQL."""

import threading
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from portal.core.errors import Conflict, InvalidInput, NotAllowed, StateConflict, TooMany
from portal.submissions import services
from portal.submissions.line import place_of
from portal.submissions.models import AuditEvent, Entrant, Submission
from portal.submissions.policies import quota_of
from portal.submissions.runs import set_verified
from portal.submissions.states import State
from portal.submissions.transitions import move
from problems.models import Problem
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> Any:
    factories.ProblemFactory()
    factories.TargetFactory()
    return factories.UserFactory()


def order(**fields: Any) -> services.Order:
    values = {
        "content": factories.GOOD.encode(),
        "filename": "s.py",
        "problem": "allreduce",
        "target": "cpu4",
    }
    return services.Order(**{**values, **fields})


def stored_files() -> list[str]:
    """Return every file under sources/."""
    found = []
    folders = default_storage.listdir("sources")[0] if default_storage.exists("sources") else []
    for folder in folders:
        found += [f"{folder}/{name}" for name in default_storage.listdir(f"sources/{folder}")[1]]
    return found


def test_submit_stores_row_file_audit_and_rings_after_commit(
    world: Any, rings: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        row = services.submit(by=world, order=order(filename="../my kernel.py")).submission
        assert rings == []
    assert rings == ["cpu4"]
    row.refresh_from_db()
    assert (row.state, row.mode, row.sample, row.source_name) == ("queued", "score", 0, "my kernel.py")
    assert row.source.read() == factories.GOOD.encode()
    assert row.source.name == f"sources/{row.pk}/solution.py"
    assert (row.run.harness, row.run.entrant.owner, row.run.entrant.kind) == ("unsorted", world, "person")
    assert AuditEvent.objects.get(object_id=str(row.pk)).actor == world


def test_the_personal_run_is_made_once_and_samples_count_up(world: Any, rings: list[str]) -> None:
    rows = [services.submit(by=world, order=order()).submission for _ in range(3)]
    assert [row.sample for row in rows] == [0, 1, 2]
    assert len({row.run_id for row in rows}) == 1
    assert Entrant.objects.count() == 1


def test_two_people_of_one_name_in_slugs_get_entrants_of_their_own(rings: list[str]) -> None:
    factories.ProblemFactory()
    factories.TargetFactory()
    people = [factories.UserFactory(username=name) for name in ("ann", "Ann", "ann.", "日本")]
    for person in people:
        services.submit(by=person, order=order())
    assert len(set(Entrant.objects.values_list("slug", flat=True))) == 4


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"problem": "nothing"}, "problem.unknown", "problem"),
        ({"problem": "9999"}, "problem.unknown", "problem"),
        ({"target": "h9000"}, "target.unknown", "target"),
        ({"mode": "turbo"}, "mode.unknown", "mode"),
        ({"mode": "quick", "size": "huge"}, "size.unknown", "size"),
        ({"mode": "score", "size": "tiny"}, "size.not_with_score", "size"),
        ({"run_id": 999_999}, "run.unknown", "run"),
        ({"content": b"x = 1"}, "source.no_solution", "file"),
        ({"content": b"x = 1", "source_field": "source"}, "source.no_solution", "source"),
        ({"content": b"def solution(a, b): pass"}, "source.arity", "file"),
    ],
)
def test_what_is_wrong_leaves_nothing_behind(
    world: Any, rings: list[str], fields: dict[str, Any], code: str, field: str
) -> None:
    before = stored_files()
    with pytest.raises(InvalidInput) as caught:
        services.submit(by=world, order=order(**fields))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert not Submission.objects.exists()
    assert stored_files() == before
    assert rings == []


def test_a_size_that_the_target_cannot_hold_is_refused_in_words(world: Any, rings: list[str]) -> None:
    problem = Problem.objects.get(slug="allreduce")
    problem.spec["sizes"]["large"] = {"M": 16384, "N": 16384}
    problem.save()
    with pytest.raises(
        InvalidInput, match=r"does not fit cpu4: .* GiB\. Sizes that fit: tiny, default\."
    ) as caught:
        services.submit(by=world, order=order(mode="check", size="large"))
    assert (caught.value.code, caught.value.field) == ("size.too_large_for_target", "size")
    assert services.submit(by=world, order=order(mode="check", size="default")).submission.size == "default"


def test_a_target_without_times_takes_checks_only(world: Any, rings: list[str]) -> None:
    factories.TargetFactory(slug="h200x1", spec={"timed": False})
    with pytest.raises(InvalidInput) as caught:
        services.submit(by=world, order=order(target="h200x1"))
    assert (caught.value.code, caught.value.field) == ("mode.not_timed", "mode")
    for mode in ("check", "profile"):
        assert services.submit(by=world, order=order(target="h200x1", mode=mode)).submission.mode == mode


def test_somebody_elses_run_and_parent_are_unknown(world: Any, rings: list[str]) -> None:
    other = factories.UserFactory()
    hidden = factories.submission(other, results_public=False)
    for fields, code in (
        ({"run_id": factories.model_run(other).pk}, "run.unknown"),
        ({"parent": hidden.pk}, "parent.unknown"),
    ):
        with pytest.raises(InvalidInput) as caught:
            services.submit(by=world, order=order(**fields))
        assert caught.value.code == code


def test_a_problem_may_be_named_by_its_number(world: Any, rings: list[str]) -> None:
    assert services.submit(by=world, order=order(problem="1")).submission.problem.slug == "allreduce"


def test_the_file_goes_when_the_row_cannot_be_stored(
    world: Any, rings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored_files()

    def broken(**_: Any) -> None:
        raise RuntimeError("the audit table is on fire")

    monkeypatch.setattr(AuditEvent.objects, "create", broken)
    with pytest.raises(RuntimeError, match="fire"):
        services.submit(by=world, order=order())
    assert not Submission.objects.exists()
    assert stored_files() == before


def test_one_key_makes_one_submission(world: Any, rings: list[str]) -> None:
    first = services.submit(by=world, order=order(idempotency_key="k1"))
    again = services.submit(by=world, order=order(idempotency_key="k1"))
    assert (first.replayed, again.replayed) == (False, True)
    assert first.submission == again.submission
    assert Submission.objects.count() == 1
    with pytest.raises(Conflict) as caught:
        services.submit(by=world, order=order(idempotency_key="k1", mode="quick"))
    assert caught.value.code == "idempotency.key_reused"
    other = services.submit(by=factories.UserFactory(), order=order(idempotency_key="k1"))
    assert not other.replayed


def test_a_sample_that_is_taken_is_a_conflict(world: Any, rings: list[str]) -> None:
    run = factories.model_run(world)
    services.submit(by=world, order=order(run_id=run.pk, sample=2))
    before = stored_files()
    with pytest.raises(Conflict) as caught:
        services.submit(by=world, order=order(run_id=run.pk, sample=2))
    assert caught.value.code == "sample.taken"
    assert stored_files() == before
    assert services.submit(by=world, order=order(run_id=run.pk)).submission.sample == 3


@pytest.mark.parametrize("end", [{"state": "cancelled"}, {"state": "done", "verdict": "infra_error"}])
def test_a_sample_without_a_verdict_is_free_again_and_taken_next(
    world: Any, rings: list[str], end: dict[str, str]
) -> None:
    run = factories.model_run(world)
    first, second = (
        services.submit(by=world, order=order(run_id=run.pk, mode="score")).submission for _ in range(2)
    )
    Submission.objects.filter(pk=first.pk).update(**end)
    assert services.submit(by=world, order=order(run_id=run.pk)).submission.sample == first.sample
    Submission.objects.filter(pk=second.pk).update(**end)
    assert services.submit(by=world, order=order(run_id=run.pk, sample=second.sample)).submission
    assert services.submit(by=world, order=order(run_id=run.pk)).submission.sample == second.sample + 1


def test_what_its_author_stops_while_it_runs_keeps_its_sample(world: Any, rings: list[str]) -> None:
    """Or whoever sees that a measurement takes long would stop it and have it measured again, as the same sample."""
    run = factories.model_run(world)
    first = services.submit(by=world, order=order(run_id=run.pk)).submission
    for state, stage in ((State.BUILDING, "received"), (State.RUNNING, "timing")):
        move(submission_id=first.pk, to=state, stage=stage)
    stopped = services.cancel(by=world, submission=first)
    assert (stopped.state, stopped.stage) == ("cancelled", "timing")
    assert "keeps its sample" in stopped.message
    second = services.submit(by=world, order=order(run_id=run.pk)).submission
    assert second.sample == first.sample + 1
    with pytest.raises(Conflict):
        services.submit(by=world, order=order(run_id=run.pk, sample=first.sample))
    counts = {row["run"]: row for row in Submission.objects.holding_samples().counts_by("run")}
    assert (counts[run.pk]["sent"], counts[run.pk]["judged"], counts[run.pk]["correct"]) == (2, 1, 0)

    move(submission_id=second.pk, to=State.BUILDING)
    assert "keeps" not in services.cancel(by=world, submission=second).message
    third = services.submit(by=world, order=order(run_id=run.pk)).submission
    assert third.sample == second.sample
    for state, stage in ((State.BUILDING, "received"), (State.RUNNING, "timing")):
        move(submission_id=third.pk, to=state, stage=stage)
    services.cancel(by=factories.UserFactory(is_staff=True), submission=third)  # no choice of its author
    assert services.submit(by=world, order=order(run_id=run.pk)).submission.sample == third.sample


def test_a_check_uses_up_no_sample(world: Any, rings: list[str]) -> None:
    run = factories.model_run(world)
    for mode in ("check", "quick", "profile"):
        services.submit(by=world, order=order(run_id=run.pk, mode=mode))
    assert services.submit(by=world, order=order(run_id=run.pk, mode="score")).submission.sample == 0


def test_the_queue_quota_counts_what_is_not_final(world: Any, rings: list[str], settings: Any) -> None:
    settings.SUBMIT_MAX_QUEUED = 2
    first = services.submit(by=world, order=order()).submission
    services.submit(by=world, order=order())
    with pytest.raises(TooMany) as caught:
        services.submit(by=world, order=order())
    assert (caught.value.code, caught.value.retry_after > 0) == ("quota.queued", True)
    services.cancel(by=world, submission=first)
    services.submit(by=world, order=order())


def test_the_hourly_quota_says_when_it_frees_and_faults_of_ours_are_free(
    world: Any, rings: list[str], settings: Any
) -> None:
    settings.SUBMIT_MAX_PER_HOUR = 2
    fault = factories.judged(world, "infra_error")
    factories.judged(world)
    services.submit(by=world, order=order())
    with pytest.raises(TooMany) as caught:
        services.submit(by=world, order=order())
    assert caught.value.code == "quota.hour"
    assert 0 < caught.value.retry_after <= 3601
    Submission.objects.exclude(pk=fault.pk).update(created_at=timezone.now() - timezone.timedelta(hours=2))
    assert quota_of(world).hour == 0


def test_cancel_is_for_the_author_and_staff_and_once(world: Any) -> None:
    row = factories.submission(world)
    with pytest.raises(NotAllowed):
        services.cancel(by=factories.UserFactory(), submission=row)
    assert services.cancel(by=factories.UserFactory(is_staff=True), submission=row).state == "cancelled"
    with pytest.raises(StateConflict):
        services.cancel(by=world, submission=row)


@pytest.mark.parametrize(
    ("lane", "hour", "told"), [(0, 1, "quota of the hour"), (1, 0, "Nothing was counted.")]
)
def test_the_hour_counts_what_was_cancelled_and_it_says_so(
    world: Any, lane: int, hour: int, told: str
) -> None:
    row = services.cancel(by=world, submission=factories.submission(world, lane=lane))
    assert quota_of(world).hour == hour
    assert told in row.message


def test_opening_the_source_is_audited_and_idempotent(world: Any) -> None:
    row = factories.submission(world)
    for _ in range(2):
        row = services.set_visibility(by=world, submission=row, source_public=True)
    assert row.source_public
    event = AuditEvent.objects.get(action="submission.visibility")
    assert (event.before, event.after) == ({"source_public": False}, {"source_public": True})
    with pytest.raises(NotAllowed):
        services.set_visibility(by=factories.UserFactory(), submission=row, source_public=False)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_parallel_requests_cannot_pass_the_quota_together(settings: Any, rings: list[str]) -> None:
    settings.SUBMIT_MAX_QUEUED = 1
    factories.ProblemFactory()
    factories.TargetFactory()
    person = factories.UserFactory()
    outcomes: list[str] = []
    gate = threading.Barrier(4)

    def send() -> None:
        gate.wait()
        try:
            services.submit(by=person, order=order())
            outcomes.append("taken")
        except TooMany as error:
            outcomes.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["quota.queued"] * 3 + ["taken"]


def test_the_line_of_single_files_is_ordered_by_lane_then_time() -> None:
    target = factories.TargetFactory()
    now = timezone.now()
    rows = [
        factories.submission(target=target, lane=lane, queued_at=now + timezone.timedelta(seconds=at))
        for lane, at in ((1, 0), (0, 5), (2, 0), (0, 1))
    ]
    assert [place_of(row) for row in rows] == [3, 2, 4, 1]
    move(submission_id=rows[3].pk, to=State.CANCELLED)
    assert [place_of(row) for row in rows] == [2, 1, 3, None]


def test_only_staff_vouch_for_runs_and_it_is_audited_once(world: Any) -> None:
    run = factories.model_run(world)
    with pytest.raises(NotAllowed):
        set_verified(by=world, run=run, verified=True)
    staff = factories.UserFactory(is_staff=True)
    for _ in range(2):
        assert set_verified(by=staff, run=run, verified=True).verified
    assert AuditEvent.objects.filter(action="run.verify").count() == 1
    assert not set_verified(by=staff, run=run, verified=False).verified


# --- on behalf of a model --------------------------------------------------------------------------


def test_a_models_name_makes_its_community_run_once(world: Any, rings: list[str]) -> None:
    first = services.submit(by=world, order=order(model="  Newcomer   7B ")).submission
    again = services.submit(by=world, order=order(model="newcomer 7b")).submission
    assert first.run == again.run
    assert (first.sample, again.sample) == (0, 1)
    entrant = first.run.entrant
    assert (entrant.kind, entrant.name, entrant.owner) == ("model", "Newcomer 7B", world)
    assert (first.run.harness, first.run.verified) == ("unsorted", False)
    other = services.submit(by=factories.UserFactory(), order=order(model="Newcomer 7B")).submission
    assert other.run.entrant != entrant  # a name is no proof: everybody has their own


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"model": "???"}, "model.name_missing"), ({"model": "a", "run_id": 1}, "run.and_model")],
)
def test_a_model_that_cannot_be_named_stores_nothing(
    world: Any, rings: list[str], fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        services.submit(by=world, order=order(**fields))
    assert (error.value.code, error.value.field) == (code, "model")
    assert not Submission.objects.exists()
    assert not Entrant.objects.filter(kind="model").exists()


def test_the_same_key_for_another_model_is_another_request(world: Any, rings: list[str]) -> None:
    services.submit(by=world, order=order(idempotency_key="k", model="one"))
    with pytest.raises(Conflict):
        services.submit(by=world, order=order(idempotency_key="k", model="two"))
