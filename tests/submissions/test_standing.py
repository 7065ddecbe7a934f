"""Withdrawal, appeals and their answers: who may, once, and what the audit log says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from evaluator.models import Rescore
from leaderboard import review
from portal.core.errors import Conflict, InvalidInput, NotAllowed
from portal.submissions import standing
from portal.submissions.models import Appeal, AuditEvent, Submission
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
URL = "/api/v1/submissions/"


def staff() -> Any:
    return factories.UserFactory(is_staff=True)


def rejected(author: Any = None) -> Submission:
    return factories.judged(author, "rejected", code="rejected.late_write", message="Bytes changed.")


def actions(row: Submission) -> list[str]:
    rows = AuditEvent.objects.filter(object_id=str(row.pk)).order_by("id")
    return list(rows.values_list("action", flat=True))


def test_an_author_withdraws_what_is_done_once() -> None:
    row = factories.judged()
    with pytest.raises(NotAllowed):
        standing.withdraw(by=staff(), submission=row)
    standing.withdraw(by=row.author, submission=row, reason="a  typo")
    row.refresh_from_db()
    assert (row.removed, row.removed_reason, row.verdict) == ("withdrawn", "a typo", "correct")
    assert row.removed_at is not None
    with pytest.raises(Conflict):
        standing.withdraw(by=row.author, submission=row)
    assert actions(row) == ["submission.withdrawn"]


def test_what_still_runs_is_cancelled_not_withdrawn() -> None:
    row = factories.submission()
    with pytest.raises(Conflict):
        standing.withdraw(by=row.author, submission=row)


def test_a_withdrawn_sample_stays_used() -> None:
    from django.db import IntegrityError, transaction

    row = factories.judged()
    standing.withdraw(by=row.author, submission=row)
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.submission(row.author, run=row.run, sample=row.sample)


def test_a_rejection_is_appealed_once_and_upheld_by_judging_again() -> None:
    row = rejected()
    with pytest.raises(NotAllowed):
        standing.appeal(by=staff(), submission=row, text="mine")
    with pytest.raises(InvalidInput):
        standing.appeal(by=row.author, submission=row, text="  ")
    made = standing.appeal(by=row.author, submission=row, text="I join the thread before I return.")
    with pytest.raises(Conflict):
        standing.appeal(by=row.author, submission=row, text="again")
    with pytest.raises(NotAllowed):
        review.answer_appeal(appeal=made, by=row.author, upheld=True, text="yes")
    review.answer_appeal(appeal=made, by=staff(), upheld=True, text="You are right.")
    assert Rescore.objects.get(submission=row).kind == "order"
    with pytest.raises(Conflict):
        review.answer_appeal(appeal=made, by=staff(), upheld=False, text="no")
    assert actions(row) == ["appeal.opened", "appeal.upheld", "submission.rescore"]


def test_a_dismissed_appeal_changes_nothing_else() -> None:
    row = rejected()
    made = standing.appeal(by=row.author, submission=row, text="please")
    review.answer_appeal(appeal=made, by=staff(), upheld=False, text="The bytes did change.")
    row.refresh_from_db()
    assert (row.verdict, Appeal.objects.get().state) == ("rejected", "dismissed")
    assert not Rescore.objects.exists()


def test_an_upheld_disqualification_ends() -> None:
    row = factories.judged()
    review.disqualify(submission=row, by=staff(), reason="copied")
    made = standing.appeal(by=row.author, submission=row, text="It is my own.")
    review.answer_appeal(appeal=made, by=staff(), upheld=True, text="So it is.")
    row.refresh_from_db()
    assert row.removed == ""
    assert not Rescore.objects.exists()


@pytest.mark.parametrize("verdict", ["correct", "incorrect", "runtime_error"])
def test_other_verdicts_are_not_appealed(verdict: str) -> None:
    row = factories.judged(verdict=verdict)
    with pytest.raises(Conflict):
        standing.appeal(by=row.author, submission=row, text="unfair")


# --- the API ---------------------------------------------------------------------------------------


def test_appeal_and_answer_by_api(api: Callable[..., APIClient]) -> None:
    row = rejected()
    mine, other, boss = api(row.author), api(factories.UserFactory()), api(staff())
    path = f"{URL}{row.pk}/appeal/"
    assert other.post(path, {"text": "x"}, format="json").status_code == 403
    assert boss.post(f"{path}answer/", {"upheld": True, "answer": "x"}, format="json").status_code == 404
    made = mine.post(path, {"text": "It is finished when I return."}, format="json")
    assert (made.status_code, made.json()["state"]) == (201, "open")
    assert mine.post(path, {"text": "again"}, format="json").status_code == 409
    assert mine.post(f"{path}answer/", {"upheld": True, "answer": "x"}, format="json").status_code == 403
    answered = boss.post(f"{path}answer/", {"upheld": False, "answer": "No."}, format="json")
    assert (answered.status_code, answered.json()["state"]) == (200, "dismissed")
    assert mine.get(path).json()["results"][0]["answer"] == "No."
    assert other.get(path).status_code == 404


def test_withdraw_by_api_takes_it_out_of_lists(api: Callable[..., APIClient]) -> None:
    row = factories.judged()
    mine, other = api(row.author), api(factories.UserFactory())
    assert other.post(f"{URL}{row.pk}/withdraw/", {}, format="json").status_code == 403
    answer = mine.post(f"{URL}{row.pk}/withdraw/", {"reason": "typo"}, format="json")
    assert (answer.status_code, answer.json()["removed"]) == (200, "withdrawn")
    assert other.get(URL).json()["results"] == []
    assert len(mine.get(URL).json()["results"]) == 1
    assert other.get(f"{URL}{row.pk}/result/").status_code == 409
    assert mine.get(f"{URL}{row.pk}/result/").status_code == 200


def test_the_source_of_what_was_removed_is_closed_again(api: Callable[..., APIClient]) -> None:
    row = factories.judged(source_public=True)
    other = api(factories.UserFactory())
    assert other.get(f"{URL}{row.pk}/source/").status_code == 200
    standing.withdraw(by=row.author, submission=row)
    assert other.get(f"{URL}{row.pk}/source/").status_code == 404


# --- the pages -------------------------------------------------------------------------------------


def test_the_author_appeals_and_reads_the_answer_on_the_page(client: Client) -> None:
    row = rejected()
    boss = staff()
    client.force_login(row.author)
    assert "Send the appeal" in client.get(f"/submissions/{row.pk}/").content.decode()
    client.post(f"/submissions/{row.pk}/standing/", {"action": "appeal", "text": "I wait for it."})
    client.force_login(boss)
    queue = client.get("/review/").content.decode()
    assert "I wait for it." in queue
    assert "Dismiss the appeal" in queue
    client.post(f"/review/submissions/{row.pk}/", {"action": "dismiss", "reason": "Not on rank 2."})
    assert "Dismiss the appeal" not in client.get("/review/").content.decode()
    client.force_login(row.author)
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    assert "Not on rank 2." in page
    assert "Send the appeal" not in page
    client.force_login(factories.UserFactory())
    assert "I wait for it." not in client.get(f"/submissions/{row.pk}/").content.decode()


def test_a_rejection_offers_an_appeal_only_while_there_is_one(client: Client) -> None:
    row = rejected()
    address = f"/submissions/{row.pk}/"
    client.force_login(row.author)
    for part in ("", "live/"):
        text = client.get(f"{address}{part}").content.decode()
        assert '<a href="#appeal">appeal below</a>' in text
        assert 'id="appeal"' in text
    standing.appeal(by=row.author, submission=row, text="It does not.")
    text = client.get(address).content.decode()
    assert "appeal below" not in text
    assert "It was appealed: what became of that is below." in text
    client.force_login(staff())
    assert "appeal below" not in client.get(address).content.decode()


@pytest.mark.parametrize(
    ("in_a_run", "mode", "counted"), [(True, "score", True), (True, "check", False), (False, "score", False)]
)
def test_only_a_sample_of_a_run_counts_as_failed(
    client: Client, in_a_run: bool, mode: str, counted: bool
) -> None:
    author = factories.UserFactory()
    row = factories.judged(author, mode=mode, **({"run": factories.model_run(author)} if in_a_run else {}))
    address = f"/submissions/{row.pk}/"
    client.force_login(author)
    assert ("stays used and counts as failed" in client.get(address).content.decode()) is counted
    standing.withdraw(by=author, submission=row, reason="trial")
    text = client.get(address).content.decode()
    assert "Reason: trial</p>" in text
    assert ("counts as a failed sample of its run" in text) is counted


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [("disqualify", "removed", "disqualified"), ("rescore", "removed", ""), ("reviewed", "removed", "")],
)
def test_staff_act_from_the_page_and_it_is_all_in_the_log(
    client: Client, action: str, field: str, value: str
) -> None:
    row = factories.judged()
    boss = staff()
    client.force_login(boss)
    assert "Audit log" not in client.get(f"/submissions/{row.pk}/").content.decode()
    answer = client.post(f"/review/submissions/{row.pk}/", {"action": action, "reason": "because"})
    assert answer.status_code == 302
    row.refresh_from_db()
    assert getattr(row, field) == value
    event = AuditEvent.objects.get(object_id=str(row.pk))
    assert (event.actor_id, event.reason) == (boss.pk, "because")
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    assert event.action in page
    assert event.action in client.get("/review/").content.decode()


def test_an_unknown_action_does_nothing(client: Client) -> None:
    row = factories.judged(author := factories.UserFactory(is_staff=True))
    client.force_login(author)
    for path in (f"/review/submissions/{row.pk}/", f"/submissions/{row.pk}/standing/"):
        assert client.post(path, {"action": "explode"}).status_code == 302
    assert not AuditEvent.objects.exists()


def test_flags_are_for_the_author_and_staff_only(client: Client) -> None:
    row = factories.judged(source_name="mine.py")
    flag = {"code": "opens_sockets", "line": 3, "sentence": "Opens network connections of its own.",
            "file": "solution.py", "count": 2, "weight": "review"}  # fmt: skip
    row.attempts.update(triage=[flag])
    assert "Opens network" not in client.get(f"/submissions/{row.pk}/").content.decode()
    for viewer, code in ((row.author, False), (staff(), True)):
        client.force_login(viewer)
        page = client.get(f"/submissions/{row.pk}/").content.decode()
        assert "Opens network connections of its own." in page
        assert "and 1 more" in page
        assert "mine.py is shown as <code>solution.py</code>" in page
        assert ("opens_sockets" in page) is code


def test_identical_sources_are_linked_as_far_as_the_viewer_may_see(client: Client) -> None:
    row, twin = factories.judged(source_public=True), factories.judged(source_public=True)
    closed = factories.judged()
    hidden = factories.judged(source_public=True, results_public=False)
    other = factories.judged(source_public=True, text=factories.GOOD + "\n# mine\n")
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    assert str(twin.pk) in page
    for unseen in (closed, hidden, other):
        assert str(unseen.pk) not in page
    client.force_login(staff())
    seen = client.get(f"/submissions/{row.pk}/").content.decode()
    assert str(hidden.pk) in seen
    assert str(closed.pk) in seen


def test_the_seed_is_published_with_the_finished_result_only(client: Client) -> None:
    row = factories.judged()
    assert "424242" in client.get(f"/submissions/{row.pk}/").content.decode()
    assert client.get(f"{URL}{row.pk}/result/").json()["seeds"]["secret"] == "424242"
    Submission.objects.filter(pk=row.pk).update(state="running", verdict="")
    assert "424242" not in client.get(f"/submissions/{row.pk}/").content.decode()
    assert client.get(f"{URL}{row.pk}/result/").status_code == 409


def test_bulk_orders_from_the_queue_page(client: Client) -> None:
    row = factories.judged()
    review.receive(attempt=row.attempts.select_related("submission__run__entrant").get())
    Rescore.objects.all().delete()
    client.force_login(staff())
    answer = client.post("/review/rescore/", {"problem": "allreduce", "reason": "new inputs"}, follow=True)
    assert "1 submission is to be scored again" in answer.content.decode()
    assert Rescore.objects.get().reason == "new inputs"
    client.post("/review/rescore/", {"problem": "allreduce", "reason": ""})
    assert AuditEvent.objects.filter(action="batch.rescore").count() == 1
    answer = client.post("/review/rescore/", {"problem": "allgather", "reason": "new inputs"}, follow=True)
    assert "Nothing matches" in answer.content.decode()


def test_a_tombstone_says_why_before_anything_else(client: Client) -> None:
    row = factories.judged(verdict="correct")
    boss = staff()
    standing.disqualify(by=boss, submission=row, reason="Reads what is not its own.")
    client.force_login(row.author)
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    card = page[page.index("verdict-title") : page.index("</section>")]
    assert "Disqualified" in card
    assert "Reads what is not its own." in card
    assert "What the judge had found: correct." in card
    assert '<a href="#appeal">' in card
    assert 'id="appeal"' in page


def test_an_answer_to_an_appeal_needs_words_and_the_refusal_says_so(client: Client) -> None:
    row = rejected()
    standing.appeal(by=row.author, submission=row, text="why?")
    client.force_login(staff())
    sent = {"action": "dismiss", "reason": " "}
    answer = client.post(f"/review/submissions/{row.pk}/", sent, follow=True)
    assert "Write an answer" in answer.content.decode()


def test_the_queue_tells_submissions_of_one_problem_apart(client: Client) -> None:
    rows = [factories.judged(), factories.judged()]
    for row in rows:
        standing.disqualify(by=staff(), submission=row, reason="x")
        standing.appeal(by=row.author, submission=row, text="why?")
    client.force_login(staff())
    page = client.get("/review/").content.decode()
    for row in rows:
        assert f'id="id-{row.pk}">{str(row.pk)[:8]}<' in page
        assert f'aria-labelledby="item-{row.pk} id-{row.pk}"' in page
    assert page.count('<span class="tag">disqualified</span>') == len(rows), "the verdict alone would mislead"
    assert "unsorted" not in page


def test_a_twin_that_was_removed_says_so(client: Client) -> None:
    row, twin = factories.judged(source_public=True), factories.judged(source_public=True)
    standing.withdraw(by=twin.author, submission=twin)
    client.force_login(staff())
    page = client.get(f"/submissions/{row.pk}/").content.decode()
    twins = page[page.index("twins-title") :]
    assert '<span class="tag">withdrawn</span>' in twins[: twins.index("</section>")]
