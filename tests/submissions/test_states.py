"""The table of states, and the one UPDATE that follows it."""

import itertools

import pytest
from django.db import IntegrityError, transaction

from portal.core.errors import StateConflict
from portal.submissions.models import AuditEvent, Submission
from portal.submissions.states import FINAL, LIVE, MOVES, State, Verdict, sources_of
from portal.submissions.transitions import move
from tests import factories


def test_every_state_has_a_row_and_final_states_lead_nowhere() -> None:
    assert set(MOVES) == set(State)
    assert {State.DONE, State.CANCELLED} == FINAL
    assert set(State) == FINAL | LIVE
    assert not FINAL & LIVE


def test_every_live_state_can_be_cancelled_and_reached() -> None:
    assert sources_of(State.CANCELLED) == LIVE
    assert all(sources_of(state) for state in State if state is not State.RECEIVED)


def test_done_is_reached_from_a_host_only() -> None:
    assert sources_of(State.DONE) == {State.BUILDING, State.RUNNING}


def verdict_for(state: State) -> Verdict | None:
    return Verdict.CORRECT if state is State.DONE else None


@pytest.mark.django_db
@pytest.mark.parametrize(("start", "to"), list(itertools.product(State, State)))
def test_a_move_happens_exactly_where_the_table_allows_it(start: State, to: State) -> None:
    row = factories.submission(state=start.value, verdict=verdict_for(start) or "")
    if to in MOVES[start]:
        move(submission_id=row.pk, to=to, verdict=verdict_for(to))
        row.refresh_from_db()
        assert row.state == to
        assert (row.finished_at is not None) == (to in FINAL)
        assert AuditEvent.objects.filter(object_id=str(row.pk), action=f"submission.{to}").count() == 1
    else:
        with pytest.raises(StateConflict):
            move(submission_id=row.pk, to=to, verdict=verdict_for(to))
        assert Submission.objects.get(pk=row.pk).state == start
        assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_expect_narrows_the_move() -> None:
    row = factories.submission(state="running")
    with pytest.raises(StateConflict):
        move(submission_id=row.pk, to=State.QUEUED, expect={State.BUILDING})


@pytest.mark.parametrize(("to", "verdict"), [(State.DONE, None), (State.CANCELLED, Verdict.CORRECT)])
def test_a_verdict_goes_with_done_only(to: State, verdict: Verdict | None) -> None:
    with pytest.raises(ValueError, match="verdict"):
        move(submission_id=Submission().pk, to=to, verdict=verdict)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "lost"},
        {"state": "done", "verdict": ""},
        {"state": "queued", "verdict": "correct"},
        {"state": "done", "verdict": "splendid"},
        {"mode": "turbo"},
    ],
)
def test_the_database_refuses_rows_that_make_no_sense(wrong: dict[str, str]) -> None:
    row = factories.submission()
    with pytest.raises(IntegrityError), transaction.atomic():
        Submission.objects.filter(pk=row.pk).update(**wrong)


@pytest.mark.django_db
def test_a_sample_is_never_replaced_and_only_our_fault_frees_it() -> None:
    first = factories.submission(sample=3)
    again = {"author": first.author, "run": first.run, "sample": 3}
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.submission(**again)
    factories.submission(**again, mode="quick")
    Submission.objects.filter(pk=first.pk).update(state="done", verdict="infra_error")
    factories.submission(**again)
