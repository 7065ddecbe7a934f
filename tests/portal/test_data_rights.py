"""A person takes their data along, and leaves: nothing of theirs stays, and nobody else's board changes."""

import io
import json
import zipfile
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from evaluator.models import Attempt, Rescore
from leaderboard.services import record_score
from portal.accounts.models import ApiToken, User
from portal.submissions.models import Appeal, AuditEvent, Entrant, ModelRun, Submission
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
PASSWORD = "a-long-password"
MARK = "Zaphod"  # in everything that is the person's own


@pytest.fixture
def person() -> User:
    author = factories.UserFactory(username=f"{MARK}B", email=f"{MARK}@example.org")
    factories.token(author, name=f"{MARK}s laptop")
    return author


def member(archive: zipfile.ZipFile, ending: str) -> Any:
    name = next(name for name in archive.namelist() if name.endswith(ending))
    return archive.read(name)


def test_the_archive_holds_everything_of_the_person_and_nothing_of_others(
    client: Client, person: User
) -> None:
    mine = factories.judged(person, results_public=False)
    factories.judged(text="# of a stranger\n" + factories.GOOD)
    client.force_login(person)
    answer = client.get("/account/data.zip")
    assert answer.streaming
    assert answer["Content-Disposition"].startswith('attachment; filename="pkb-data-')
    archive = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    assert archive.testzip() is None
    assert len(archive.namelist()) == 3
    account = json.loads(archive.read("account.json"))
    assert account["person"]["email"] == f"{MARK}@example.org"
    assert [token["name"] for token in account["tokens"]] == [f"{MARK}s laptop"]
    assert "digest" not in archive.read("account.json").decode()
    assert member(archive, "/solution.py").decode() == factories.GOOD
    facts = json.loads(member(archive, "/submission.json"))
    assert (facts["id"], facts["problem"]) == (str(mine.pk), "allreduce")
    assert facts["attempts"][0]["result"]["timing"]["speedup"] == 1.51
    assert "hello from the secret log" in facts["attempts"][0]["log"]


def test_leaving_needs_the_password(client: Client, person: User) -> None:
    client.force_login(person)
    answer = client.post("/account/", {"password": "guessed"})
    assert answer.status_code == 422
    assert "not your password" in answer.content.decode()
    assert User.objects.get(pk=person.pk).is_active


def test_leaving_erases_the_person_and_keeps_the_places_of_others(
    client: Client, person: User, django_capture_on_commit_callbacks: Any
) -> None:
    kept = factories.judged(person)
    wrong = factories.judged(person, "incorrect", message=f"{MARK} wrote this", result={"stacks": [MARK]})
    gone = [
        factories.judged(person, mode="quick"),
        factories.judged(person, results_public=False),
        factories.submission(person),
    ]
    attempt = kept.attempts.get()
    record_score(attempt=attempt)
    attempt.result["cells"] = [{"size": "tiny", "verdict": "incorrect", "message": MARK}]
    attempt.save()
    other = factories.judged()
    record_score(attempt=other.attempts.get())
    Appeal.objects.create(submission=wrong, author=person, ground="rejected", text=f"{MARK} objects")
    AuditEvent.objects.create(
        actor=person, action="x", object_type="submission", object_id="1", reason=f"{MARK} said so"
    )
    empty = factories.model_run(person)
    trace = default_storage.save("profiles/trace.json.gz", ContentFile(b"quotes the source"))
    now = timezone.now()
    wrong.attempts.get().artifacts.create(name="trace.json.gz", file=trace, bytes=17, created_at=now)
    files = [trace, *(row.source.name for row in [kept, wrong, *gone])]
    before = client.get("/boards/cpu4/allreduce.json").json()["rows"]
    client.force_login(person)

    page = client.get("/account/").content.decode()
    assert "3 submissions with them" in page
    assert "2 finished scores" in page
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post("/account/", {"password": PASSWORD}, follow=True)
    assert "Your account is deleted." in answer.content.decode()
    assert client.get("/account/").status_code == 302  # nobody is signed in

    assert not any(default_storage.exists(name) for name in files)
    assert default_storage.exists(other.source.name)
    assert set(Submission.objects.values_list("pk", flat=True)) == {kept.pk, wrong.pk, other.pk}
    after = client.get("/boards/cpu4/allreduce.json").json()["rows"]
    assert [(row["place"], row["speedup"]) for row in after] == [(r["place"], r["speedup"]) for r in before]
    assert "deleted account" in {row["entrant"] for row in after}
    dump = json.dumps(
        [
            list(model.objects.values())
            for model in (User, ApiToken, Entrant, ModelRun, Submission, Attempt, Appeal, AuditEvent)
        ],
        default=str,
    )
    assert MARK not in dump
    assert not ModelRun.objects.filter(pk=empty.pk).exists()
    event = AuditEvent.objects.get(action="account.erased")
    assert event.object_id == str(person.pk)
    assert event.after == {"submissions_deleted": 3, "submissions_kept_without_name": 2}


def test_what_was_kept_shows_its_figures_and_no_source(client: Client, person: User, api: Any) -> None:
    row = factories.judged(person, source_public=True)
    client.force_login(person)
    client.post("/account/", {"password": PASSWORD})
    page = client.get(f"/submissions/{row.pk}/")
    assert page.status_code == 200
    assert "the source was erased with it" in page.content.decode()
    assert "1.51" in page.content.decode()
    staff = factories.UserFactory(is_staff=True)
    for path in ("source/", "logs/"):
        assert api(staff, name=path).get(f"/api/v1/submissions/{row.pk}/{path}").status_code == 404
    again = api(staff, name="again").post(
        f"/api/v1/submissions/{row.pk}/rescore/", {"reason": "x"}, format="json"
    )
    assert (again.status_code, again.json()["code"]) == (409, "rescore.no_source")


def test_nobody_can_come_back_and_old_tokens_are_dead(client: Client, person: User, api: Any) -> None:
    caller = api(person, name="another")
    client.force_login(person)
    client.post("/account/", {"password": PASSWORD})
    assert caller.get("/api/v1/quota/").status_code == 401
    assert not client.login(username=f"{MARK}B", password=PASSWORD)
    factories.UserFactory(username=f"{MARK}B")  # the name is free


def test_staff_and_what_is_scored_right_now_wait(client: Client, person: User) -> None:
    staff = factories.UserFactory(is_staff=True)
    client.force_login(staff)
    assert client.post("/account/", {"password": PASSWORD}).status_code == 422
    row = factories.judged(person)
    Rescore.objects.create(submission=row, kind="order", state="running", created_at=timezone.now())
    client.force_login(person)
    answer = client.post("/account/", {"password": PASSWORD})
    assert "being scored again" in answer.content.decode()
    assert User.objects.filter(username=f"{MARK}B").exists()


def test_a_batch_of_new_scores_leaves_out_what_was_erased(person: User, client: Client) -> None:
    from leaderboard import review

    row = factories.judged(person)
    record_score(attempt=row.attempts.get())
    client.force_login(person)
    client.post("/account/", {"password": PASSWORD})
    staff = factories.UserFactory(is_staff=True)
    assert review.rescore_all(batch=review.Batch(problem="allreduce"), by=staff, reason="x") == (0, 0)
