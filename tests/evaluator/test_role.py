"""docs/evaluator-role.sql on PostgreSQL: the database role of a worker may do its work and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction
from django.db.models import Model
from django.utils import timezone

from evaluator import selectors, services, tasks
from evaluator.models import Artifact, Attempt, Baseline, Host, Rescore
from evaluator.worker import Worker
from leaderboard import review
from leaderboard.models import BoardCell, ImportedResult, Review, RunSummary, Score
from portal.accounts.models import ApiToken, User
from portal.submissions import standing
from portal.submissions.models import Appeal, AuditEvent, Submission
from portal.submissions.services import cancel
from problems.models import Problem
from tests.evaluator import build
from tests.evaluator.fake_judge import FakeJudge
from tests.evaluator.test_runner import Watch

pytestmark = [pytest.mark.postgres, pytest.mark.django_db, pytest.mark.usefixtures("rights")]
RIGHTS = Path(__file__).resolve().parents[2] / "docs" / "evaluator-role.sql"
AsWorker = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The role, with what a former file had given it; it is gone with the test's transaction."""
    for module in ("evaluator.services.rescores", "evaluator.tasks"):
        monkeypatch.setattr(f"{module}.ring", lambda target: True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = 'pkb_evaluator'")
        if cursor.fetchone() is None:
            cursor.execute("CREATE ROLE pkb_evaluator")
        cursor.execute("GRANT ALL ON submissions_submission, accounts_user TO pkb_evaluator")
        cursor.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO pkb_evaluator")
        cursor.execute(RIGHTS.read_text())


@pytest.fixture
def as_worker(django_capture_on_commit_callbacks: Any) -> AsWorker:
    """Do as the role what a block does, and what that does once it is committed."""

    @contextmanager
    def role() -> Iterator[None]:
        with connection.cursor() as cursor:
            cursor.execute("SET ROLE pkb_evaluator")
            try:
                with django_capture_on_commit_callbacks(execute=True):
                    yield
            finally:
                if not connection.needs_rollback:
                    cursor.execute("RESET ROLE")

    return role


def worker(name: str = "one") -> Worker:
    host = services.register_host(name=name, target="cpu4")
    return Worker(host=host, target="cpu4", judge=FakeJudge("cpu4"), pulse=Watch(), self_test=lambda _: True)


def state(row: Submission) -> tuple[str, str]:
    row.refresh_from_db()
    return row.state, row.verdict


def test_from_a_submission_to_a_confirmed_place(as_worker: AsWorker) -> None:
    row = build.submission("# fake: correct 2\n")
    with as_worker():
        one = worker()
        one.drain()
    with as_worker():
        one.drain()  # the second measurement, for which a new best waits
    assert state(row) == ("done", "correct")
    assert not Attempt.objects.filter(announced_at=None).exists()
    assert list(Attempt.objects.values_list("triage", flat=True)) == [[], []]
    first = Score.objects.get(superseded_at=None)
    assert (first.provisional, first.confirmed_at is not None) == (False, True)
    assert BoardCell.objects.get().standing == 1
    assert RunSummary.objects.get().solved == 1
    actions = AuditEvent.objects.filter(object_id=str(row.pk)).values_list("action", flat=True)
    assert {"submission.building", "submission.done", "score.provisional", "score.confirmed"} <= set(actions)


def test_a_witness_that_disagrees_asks_for_another(as_worker: AsWorker) -> None:
    row = build.submission()
    with as_worker():
        host = services.register_host(name="one", target="cpu4")
        for speedup in (4.0, 2.0):
            lease = services.lease(host=host)
            assert lease is not None
            with transaction.atomic():
                services.complete(token=lease.token, result=build.result(speedup=speedup))
            services.announce(attempt_id=lease.attempt_id)
    assert Score.objects.get(submission=row, superseded_at=None).tries == 1
    assert Rescore.objects.filter(state="queued", kind="confirm").count() == 1


def test_an_order_replaces_the_verdict(as_worker: AsWorker) -> None:
    row = build.submission("# fake: incorrect\n", state="done", verdict="correct", finished_at=timezone.now())
    review.rescore(submission=row, by=build.staff(), reason="asked")
    with as_worker():
        worker().drain()
    assert state(row) == ("done", "incorrect")
    assert Rescore.objects.get().state == "done"


def test_faults_go_back_to_the_queue_and_end_at_the_third(as_worker: AsWorker) -> None:
    row = build.submission("# fake: fault\n")
    with as_worker():
        worker().drain()
    assert state(row) == ("done", "runtime_error")
    assert Attempt.objects.count() == 3


def test_what_is_released_reaped_refused_and_cancelled(as_worker: AsWorker) -> None:
    row = build.submission("# fake: hold /dev/null\n")
    with as_worker():
        one = worker()
        lease = services.lease(host=one.host)
        assert lease is not None
        assert services.set_stage(token=lease.token, stage="timing")
        assert services.heartbeat(token=lease.token)
        assert services.wanted(token=lease.token)
        assert services.release(token=lease.token)
    assert state(row) == ("queued", "")
    with as_worker():
        services.lease(host=one.host)
    Attempt.objects.filter(finished_at=None).update(lease_expires_at=timezone.now() - timedelta(hours=1))
    with as_worker():
        tasks.tick()
        services.lease(host=one.host)
        services.register_host(name="one", target="cpu4")
    assert state(row) == ("queued", "")
    cancel(by=row.author, submission=row)
    other = build.submission("# fake: nosandbox\n")
    with as_worker():
        worker().drain()
    assert state(other) == ("done", "infra_error")
    third = build.submission()
    with as_worker():
        host = services.register_host(name="two", target="cpu4")
        lease = services.lease(host=host)
        assert lease is not None
    cancel(by=third.author, submission=third)
    with as_worker():
        assert not services.wanted(token=lease.token)
        assert services.stop_cancelled(token=lease.token)


def test_artefacts_noise_and_the_life_of_a_host(as_worker: AsWorker) -> None:
    build.submission("# fake: correct 0.9\n", mode="profile")
    with as_worker():
        worker().drain()
    assert Artifact.objects.count() == 2
    sent = build.submission()
    with as_worker():
        host = services.register_host(name="one", target="cpu4")
        lease = services.lease(host=host)
        assert lease is not None
        found = build.result(speedup=0.9)
        found["timing"] |= {"before_ms": 2.0, "after_ms": 2.2}
        services.complete(token=lease.token, result=found)
    with as_worker():
        assert selectors.noise_floor(problem_id=sent.problem_id, host_id=host.pk) == 0.10
        assert services.seen(host=host)
        services.drain(host=host, reason="upgrade")
        services.reinstate(host=host)
        services.quarantine(host=host, reason="Not fit: hot")
        services.reinstate_fit(host=host, reason="Not fit: ")
        services.retire_host(host=host)
        services.announce_missed()
    assert Baseline.objects.count() == 1
    assert Host.objects.get().stopped_at is not None


def held(table: str) -> str:
    """What the role may do with a whole table."""
    named = ("SELECT", "INSERT", "UPDATE", "DELETE")
    asked = ", ".join("has_table_privilege('pkb_evaluator', %s, %s)" for _ in named)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked}", [value for name in named for value in (table, name)])
        return "".join(name[0] for name, has in zip(named, cursor.fetchone(), strict=True) if has)


def test_whole_tables_are_given_to_what_writes_them() -> None:
    def of(model: type[Model]) -> str:
        return held(model._meta.db_table)

    assert {of(model) for model in apps.get_app_config("evaluator").get_models()} == {"SIU"}
    assert [of(model) for model in (BoardCell, RunSummary)] == ["SIU", "SIU"]
    assert [of(Score), of(AuditEvent)] == ["SI", "I"]
    assert [of(model) for model in (Submission, Problem)] == ["S", "S"]
    assert [of(model) for model in (User, ApiToken, Appeal, Review, ImportedResult)] == [""] * 5


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT reason FROM submissions_auditevent",
        "UPDATE submissions_auditevent SET reason = ''",
        "SELECT text FROM submissions_appeal",
        "SELECT username FROM accounts_user",
        *(
            f"UPDATE submissions_submission SET {change}"
            for change in (
                "source_public = true", "results_public = true", "removed = ''", "author_id = 1", "run_id = 1",
                "mode = 'score'", "source = 'x'",
            )
        ),
        "INSERT INTO submissions_submission SELECT * FROM submissions_submission",
        "DELETE FROM submissions_submission",
        "UPDATE leaderboard_score SET speedup = 9",
        "UPDATE leaderboard_score SET ranked = true",
        "DELETE FROM leaderboard_score",
        "SELECT * FROM leaderboard_review",
        "DELETE FROM leaderboard_importedresult",
        "DELETE FROM evaluator_attempt",
        "SELECT nextval('submissions_appeal_id_seq')",
        "SELECT nextval('accounts_user_id_seq')",
    ],
)  # fmt: skip
def test_what_is_no_part_of_its_work_is_refused(as_worker: AsWorker, statement: str) -> None:
    row = build.submission("x = 1\n", state="done", verdict="rejected", finished_at=timezone.now())
    standing.appeal(by=row.author, submission=row, text="my private words")
    with (
        as_worker(),
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
