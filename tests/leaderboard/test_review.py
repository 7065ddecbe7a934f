"""New bests are measured again before they rank first; staff disqualify, confirm and re-score."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from evaluator import services as queue
from evaluator.models import Attempt, Rescore
from leaderboard import querysets, review, review_queue, selectors
from leaderboard.models import RunSummary, Score
from portal.core.errors import Conflict, InvalidInput, NotAllowed
from portal.submissions import standing
from portal.submissions.models import AuditEvent, Submission
from portal.submissions.runs import ensure_personal_run
from portal.submissions.services import set_visibility
from problems.models import Problem
from tests.evaluator import build

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


def judge(speedup: float = 2.0, verdict: str = "correct", **fields: Any) -> Attempt:
    """Lease whatever is next, give it this result, and tell the boards, as the worker does."""
    host = queue.register_host(name="h", target="cpu4")
    lease = queue.lease(host=host)
    assert lease is not None
    result = build.result(verdict, speedup=speedup, **fields)
    assert queue.complete(token=lease.token, result=result, harness_version=result["harness_version"])
    assert queue.announce(attempt_id=lease.attempt_id)
    return Attempt.objects.get(pk=lease.attempt_id)


def sent(speedup: float, *, confirmed: bool = True, **fields: Any) -> Submission:
    """A submission that was judged, and confirmed where that was asked for."""
    row = build.submission(**fields)
    judge(speedup)
    if confirmed and Rescore.objects.filter(submission=row, state="queued").exists():
        judge(speedup)
    row.refresh_from_db()
    return row


def board() -> selectors.ProblemBoard:
    return selectors.problem_board(problem=build.problem(), target=build.target(), size="tiny")


def speeds() -> tuple[list[float], list[float]]:
    """(placed, provisional) speedups of the board."""
    shown = board()
    return [row.speedup for row in shown.rows], [row.speedup for row in shown.provisional]


# --- a new best ------------------------------------------------------------------------------------


def test_a_new_best_waits_for_a_second_measurement_that_agrees() -> None:
    row = build.submission()
    judge(2.0)
    assert speeds() == ([], [2.0])
    assert Rescore.objects.get().kind == "confirm"
    judge(2.1)
    assert speeds() == ([2.0], [])
    score = Score.objects.get(superseded_at=None)
    assert score.confirmed_at is not None
    assert Score.objects.exclude(pk=score.pk).get().speedup == 2.1
    row.refresh_from_db()
    assert (row.state, row.verdict) == ("done", "correct")
    numbered = row.attempts.order_by("number").values_list("number", "rescore__kind")
    assert list(numbered) == [(1, None), (2, "confirm")]
    told = set(AuditEvent.objects.filter(action__startswith="score.").values_list("action", flat=True))
    assert told == {"score.provisional", "score.confirmed"}


def test_what_is_no_new_best_ranks_at_once() -> None:
    sent(2.0)
    build.submission()
    judge(1.9)
    assert speeds() == ([2.0, 1.9], [])
    assert not Rescore.objects.filter(state="queued").exists()


def test_the_reference_is_the_record_where_nobody_stands() -> None:
    build.submission()
    judge(0.98)
    assert speeds() == ([0.98], [])
    build.submission()
    judge(0.99)
    assert speeds() == ([0.98], [0.99])


@pytest.mark.parametrize("how", ["disqualified", "withdrawn"])
def test_whoever_comes_first_by_anothers_removal_is_measured_again_too(how: str) -> None:
    first, second = sent(3.0), sent(2.0)
    assert speeds() == ([3.0, 2.0], [])
    if how == "disqualified":
        review.disqualify(submission=first, by=build.staff(), reason="copied")
    else:
        review.withdraw(submission=first, by=first.author)
    assert speeds() == ([], [2.0])
    judge(2.0)
    assert speeds() == ([2.0], [])
    review.reinstate(submission=first, by=build.staff(), reason="mistake")
    assert speeds() == ([3.0, 2.0], [])
    review.disqualify(submission=first, by=build.staff(), reason="after all")
    assert speeds() == ([2.0], [])
    assert not Rescore.objects.filter(submission=second, state="queued").exists()


def test_whoever_comes_first_because_another_is_hidden_is_measured_again_too() -> None:
    first, second = sent(3.0), sent(2.0)
    set_visibility(by=first.author, submission=first, results_public=False)
    assert speeds() == ([], [2.0])
    judge(2.0)
    set_visibility(by=first.author, submission=first, results_public=True)
    assert speeds() == ([3.0, 2.0], [])
    assert not Rescore.objects.filter(state="queued").exists()
    assert Score.objects.get(submission=second, superseded_at=None).confirmed_at is not None


@pytest.mark.parametrize("how", ["hidden", "removed"])
def test_who_was_away_while_the_record_fell_is_measured_again_on_return(how: str) -> None:
    first, second = sent(3.0), sent(2.0)
    if how == "hidden":
        set_visibility(by=second.author, submission=second, results_public=False)
    else:
        review.disqualify(submission=second, by=build.staff(), reason="copied")
    review.withdraw(submission=first, by=first.author)
    if how == "hidden":
        set_visibility(by=second.author, submission=second, results_public=True)
    else:
        review.reinstate(submission=second, by=build.staff(), reason="mistake")
    assert speeds() == ([], [2.0])
    judge(2.0)
    assert speeds() == ([2.0], [])


def test_whoever_comes_first_because_another_fell_back_is_measured_again_too() -> None:
    first = sent(3.0)
    sent(2.0)
    review.rescore(submission=first, by=build.staff(), reason="again")
    judge(1.5)
    assert speeds() == ([1.5], [2.0])
    judge(2.0)
    assert speeds() == ([2.0, 1.5], [])


def test_whoever_comes_first_because_a_second_measurement_disagreed_is_measured_again_too() -> None:
    first = sent(3.0)
    sent(2.0)
    review.rescore(submission=first, by=build.staff(), reason="again")
    judge(9.0)
    assert speeds() == ([2.0], [9.0])
    judge(1.0)
    judge(1.0)
    assert speeds() == ([], [9.0, 2.0])
    judge(2.0)
    assert speeds() == ([2.0], [9.0])


def test_a_new_best_that_could_not_be_measured_again_waits_for_a_person() -> None:
    build.submission()
    judge(2.0)
    (item,) = review_queue.items()
    assert not item.urgent
    host = queue.register_host(name="h", target="cpu4")
    for _ in range(3):
        lease = queue.lease(host=host)
        assert lease is not None
        queue.fail_infra(token=lease.token, fault="ours")
    (item,) = review_queue.items()
    assert item.urgent
    assert speeds() == ([], [2.0])


def test_an_older_place_stays_while_the_new_best_waits() -> None:
    run = build.run()
    sent(2.0, run=run)
    sent(3.0, run=run, confirmed=False)
    assert speeds() == ([2.0], [3.0])
    judge(3.0)
    assert speeds() == ([3.0], [])


def test_disagreement_is_tried_once_more_and_then_left_to_staff() -> None:
    row = build.submission()
    judge(5.0)
    judge(1.1)
    assert Score.objects.get(provisional=True).tries == 1
    judge(1.1)
    assert Score.objects.get(provisional=True).tries == 2
    assert not Rescore.objects.filter(state="queued").exists()
    assert speeds() == ([], [5.0])
    (item,) = review_queue.items()
    assert item.submission == row
    assert item.urgent
    with pytest.raises(NotAllowed):
        review.confirm(submission=row, by=build.user(), reason="mine")
    with pytest.raises(InvalidInput):
        review.confirm(submission=row, by=build.staff(), reason=" ")
    assert review.confirm(submission=row, by=build.staff(), reason="seen it run") == 1
    assert speeds() == ([5.0], [])
    with pytest.raises(Conflict):
        review.confirm(submission=row, by=build.staff(), reason="again")


def test_a_second_measurement_that_fails_confirms_nothing_and_keeps_the_verdict() -> None:
    row = build.submission()
    judge(2.0)
    judge(verdict="incorrect")
    row.refresh_from_db()
    assert row.verdict == "correct"
    assert speeds() == ([], [2.0])
    judge(2.0)
    assert speeds() == ([2.0], [])


@pytest.mark.parametrize(
    ("witness", "floor", "agreed"),
    [(1.9, 0.01, True), (1.85, 0.01, False), (1.85, 0.1, True), (2.6, 0.1, False)],
)
def test_agreement_is_the_interval_or_the_floor(witness: float, floor: float, agreed: bool) -> None:
    claim = Score(speedup=2.0, speedup_low=1.9, speedup_high=2.1, noise_floor=floor, ranked=True)
    other = Score(speedup=witness, noise_floor=floor, ranked=True)
    assert review.agrees(claim, other) is agreed
    assert not review.agrees(claim, Score(speedup=2.0, noise_floor=floor, ranked=False))


def test_hearing_of_an_attempt_twice_changes_nothing() -> None:
    build.submission()
    attempt = judge(2.0)
    for _ in range(2):
        review.receive(attempt=attempt)
    assert Rescore.objects.count() == 1
    witness = judge(1.0)
    review.receive(attempt=witness)
    assert Score.objects.get(provisional=True).tries == 1


def test_the_board_says_what_is_provisional(client: Client) -> None:
    build.submission(run=build.run(build.entrant("Zebra")))
    judge(2.0)
    page = client.get("/boards/cpu4/allreduce/").content.decode()
    assert "1 provisional:" in page
    assert "Zebra" in page
    assert '<span class="badge badge--info">provisional</span>' in page
    assert "Nobody stands here yet" not in page
    document = client.get("/boards/cpu4/allreduce.json").json()
    assert document["rows"] == []
    assert [(r["speedup"], r["place"]) for r in document["provisional"]] == [(2.0, None)]
    assert "true" in client.get("/boards/cpu4/allreduce.csv").content.decode().splitlines()[1]
    exported = b"".join(client.get("/boards/export/scores.jsonl").streaming_content).decode().splitlines()
    assert json.loads(exported[1])["provisional"] is True


def test_a_provisional_best_counts_as_correct_but_not_yet_for_its_speed() -> None:
    from leaderboard import summaries

    row = build.submission()
    judge(2.0)
    found = summaries.refresh(run=row.run, target=row.target, size="tiny").figures
    assert (found["solved"], found["faster"]) == (1, 0)
    judge(2.0)
    stored = RunSummary.objects.get()
    assert stored.due or stored.figures["faster"] == 1, "it was taken over the waiting score"
    found = summaries.refresh(run=row.run, target=row.target, size="tiny").figures
    assert (found["solved"], found["faster"]) == (1, 1)


# --- removal ---------------------------------------------------------------------------------------


def surfaces(client: Client) -> dict[str, str]:
    paths = ("/", "/boards/cpu4/", "/boards/cpu4/allreduce/", "/boards/cpu4/allreduce.csv",
             "/boards/cpu4/allreduce.json", "/api/v1/submissions/")  # fmt: skip
    return {path: client.get(path).content.decode() for path in paths}


@pytest.mark.parametrize("how", ["disqualified", "withdrawn"])
def test_what_is_removed_leaves_every_surface_and_leaves_a_tombstone(client: Client, how: str) -> None:
    row = sent(2.0, run=build.run(build.entrant("Zebra")))
    assert all("Zebra" in text for text in surfaces(client).values())
    boss = build.staff()
    if how == "disqualified":
        assert review.disqualify(submission=row, by=boss, reason="copied from another") == 1
    else:
        standing.withdraw(by=row.author, submission=row, reason="it was a test")
    assert [path for path, text in surfaces(client).items() if "Zebra" in text] == []
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    assert how.capitalize() in page
    assert ("copied from another" in page) == (how == "disqualified")
    assert "2.00×" not in page
    assert client.get(f"/api/v1/submissions/{row.pk}/").json()["result"] is None
    assert client.get(f"/api/v1/submissions/{row.pk}/").json()["removed"] == how
    client.force_login(row.author)
    assert "2.00×" in client.get(f"/submissions/{row.pk}/").content.decode()
    client.logout()
    review.reinstate(submission=row, by=boss, reason="a mistake")
    assert all("Zebra" in text for text in surfaces(client).values())
    told = AuditEvent.objects.filter(object_id=str(row.pk), action__startswith="submission.")
    assert {f"submission.{how}", "submission.reinstated"} <= set(told.values_list("action", flat=True))


def test_a_board_shows_no_word_for_runs_that_nobody_named(client: Client) -> None:
    row = sent(0.9, run=ensure_personal_run(by=build.user("walker")))
    page = client.get("/boards/cpu4/allreduce/").content.decode()
    assert f"{row.run.entrant.name}</span>" in page
    assert "unsorted" not in page


def test_a_chart_stands_under_its_own_heading(client: Client) -> None:
    for speedup in (0.9, 0.8, 0.7):
        sent(speedup, run=build.run(build.entrant(f"E{speedup}")))
    page = client.get("/boards/cpu4/allreduce/").content.decode()
    record = page[page.index("How the record rose") :]
    assert "are distributed" not in record[: record.index("</section>")]
    assert "are distributed" in record[record.index("How the speedups are spread") :]


def test_only_staff_disqualify_and_only_with_a_reason() -> None:
    row = sent(2.0)
    with pytest.raises(NotAllowed):
        review.disqualify(submission=row, by=row.author, reason="no")
    with pytest.raises(InvalidInput):
        review.disqualify(submission=row, by=build.staff(), reason="")
    review.disqualify(submission=row, by=build.staff(), reason="x")
    with pytest.raises(Conflict):
        review.disqualify(submission=row, by=build.staff(), reason="x")
    with pytest.raises(NotAllowed):
        review.reinstate(submission=row, by=row.author, reason="please")


def test_a_removed_submission_is_not_measured_again() -> None:
    row = build.submission()
    judge(2.0)
    review.disqualify(submission=row, by=build.staff(), reason="x")
    assert queue.lease(host=queue.register_host(name="h", target="cpu4")) is None
    review.reinstate(submission=row, by=build.staff(), reason="y")
    judge(2.0)
    assert speeds() == ([2.0], [])


# --- score again -----------------------------------------------------------------------------------


def test_a_new_score_replaces_the_old_one_and_the_verdict() -> None:
    row = sent(0.9)
    review.rescore(submission=row, by=build.staff(), reason="looks odd")
    judge(verdict="incorrect")
    row.refresh_from_db()
    assert (row.state, row.verdict) == ("done", "incorrect")
    assert speeds() == ([], [])
    assert Score.objects.get(superseded_at=None).verdict == "incorrect"
    assert AuditEvent.objects.get(action="submission.rejudged").before["verdict"] == "correct"


def test_a_new_score_that_agrees_needs_no_second_confirmation() -> None:
    row = sent(2.0)
    review.rescore(submission=row, by=build.staff())
    judge(2.1)
    assert speeds() == ([2.1], [])


def test_a_late_message_does_not_replace_a_newer_score() -> None:
    row = build.submission()
    host = queue.register_host(name="h", target="cpu4")
    lease = queue.lease(host=host)
    assert lease is not None
    queue.complete(token=lease.token, result=build.result(speedup=0.7))
    row.refresh_from_db()
    review.rescore(submission=row, by=build.staff())
    judge(0.9)
    queue.announce(attempt_id=lease.attempt_id)
    assert speeds() == ([0.9], [])


def test_authors_have_stale_scores_measured_again_and_no_others() -> None:
    row = sent(0.9)
    with pytest.raises(NotAllowed):
        review.rescore(submission=row, by=row.author)
    Problem.objects.update(score_revision="rev2")
    assert speeds() == ([], [])
    assert board().stale == 1
    with pytest.raises(NotAllowed):
        review.rescore(submission=row, by=build.user())
    first = review.rescore(submission=row, by=row.author)
    assert review.rescore(submission=row, by=row.author) == first
    judge(0.95, problem={"slug": "allreduce", "revision": "rev2"})
    assert speeds() == ([0.95], [])
    assert board().stale == 0


def test_a_new_protocol_version_makes_scores_stale_everywhere(client: Client, monkeypatch: Any) -> None:
    row = sent(0.9, run=build.run(build.entrant("Zebra")))
    monkeypatch.setattr(querysets, "PROTOCOL_VERSION", "next")
    monkeypatch.setattr("portal.pages.standing_page.PROTOCOL_VERSION", "next")
    for module in ("cells", "summaries"):  # what is kept under the old version is due
        monkeypatch.setattr(f"leaderboard.{module}.RULES", "next")
    assert speeds() == ([], [])
    page = client.get("/boards/cpu4/allreduce/").content.decode()
    assert "Zebra" not in page
    assert "1 score of an older revision" in page
    assert "Stale:" in client.get(f"/submissions/{row.pk}/").content.decode()
    assert "protocol version next" in client.get(f"/api/v1/submissions/{row.pk}/").json()["standing"]["stale"]
    client.force_login(row.author)
    assert "Have it scored again" in client.get(f"/submissions/{row.pk}/").content.decode()
    assert ">stale<" in client.get("/submissions/").content.decode()


def test_all_of_a_problem_or_of_a_version_are_scored_again() -> None:
    one, two = sent(0.9), sent(0.8)
    other = sent(0.7, problem=build.problem("other"))
    boss = build.staff()
    with pytest.raises(NotAllowed):
        review.rescore_all(batch=review.Batch(problem="allreduce"), by=one.author, reason="r")
    with pytest.raises(InvalidInput):
        review.rescore_all(batch=review.Batch(problem="allreduce"), by=boss, reason="")
    with pytest.raises(Conflict):
        review.rescore_all(batch=review.Batch(), by=boss, reason="r")
    assert review.rescore_all(batch=review.Batch(problem="allreduce"), by=boss, reason="new inputs") == (2, 0)
    assert {r.submission_id for r in Rescore.objects.all()} == {one.pk, two.pk}
    batch = review.Batch(harness_version=Score.objects.first().harness_version)
    assert review.rescore_all(batch=batch, by=boss, reason="new judge") == (3, 0)
    assert Rescore.objects.filter(submission=other).exists()
    Rescore.objects.filter(submission=one).update(kind="confirm", state="running")
    assert review.rescore_all(batch=review.Batch(problem="allreduce"), by=boss, reason="again") == (1, 1)
    nothing = review.rescore_all(batch=review.Batch(problem="other", stale_only=True), by=boss, reason="r")
    assert nothing == (0, 0)
    assert AuditEvent.objects.filter(action="batch.rescore").count() == 4


# --- the queue -------------------------------------------------------------------------------------

PATCHES = "import torch\n\ntorch.equal = None\n\ndef solution(tensor):\n    return tensor\n"


def test_flags_bring_a_correct_result_into_the_queue_until_it_was_looked_at() -> None:
    row = build.submission(PATCHES)
    attempt = judge(0.9)
    assert [flag["code"] for flag in attempt.triage] == ["patches_modules"]
    (item,) = review_queue.items()
    assert [flag["code"] for flag in item.flags] == ["patches_modules"]
    assert not item.urgent
    with pytest.raises(NotAllowed):
        review.mark_reviewed(submission=row, by=row.author)
    review.mark_reviewed(submission=row, by=build.staff(), reason="harmless")
    assert review_queue.items() == []
    with pytest.raises(Conflict):
        review.mark_reviewed(submission=row, by=build.staff())


def test_notes_alone_and_failed_files_stay_out_of_the_queue() -> None:
    build.submission("import threading\n\ndef solution(tensor):\n    return tensor\n")
    judge(0.9)
    build.submission(PATCHES)
    judge(verdict="incorrect")
    assert review_queue.items() == []


def test_flags_never_touch_the_verdict() -> None:
    row = build.submission(PATCHES)
    judge(0.9)
    row.refresh_from_db()
    assert (row.verdict, row.code) == ("correct", "")
    assert speeds() == ([0.9], [])
