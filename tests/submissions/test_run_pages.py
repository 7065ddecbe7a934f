"""Pages of runs: listed for their owner, with progress per problem, and a zip taken file by file."""

import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import User
from portal.submissions.models import ModelRun, Submission
from portal.submissions.progress import progress_of
from portal.submissions.runs import ensure_model_run, ensure_personal_run
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


@pytest.fixture
def owner() -> User:
    factories.ProblemFactory()
    factories.ProblemFactory(slug="allgather")
    factories.TargetFactory()
    return factories.UserFactory()


@pytest.fixture
def run(owner: User, client: Client) -> ModelRun:
    client.force_login(owner)
    return factories.model_run(owner)


def packed(**files: str) -> SimpleUploadedFile:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in files.items():
            made.writestr(f"{name}.py", text)
    return SimpleUploadedFile("solutions.zip", archive.getvalue())


def send(client: Client, run: ModelRun, file: Any, **fields: str) -> Any:
    usual = {"target": "cpu4", "mode": "score", "key": "k"}
    return client.post(f"/runs/{run.pk}/", usual | fields | {"file": file})


def test_making_a_run_leads_to_its_page_and_my_work_to_both(client: Client, owner: User) -> None:
    client.force_login(owner)
    fields = {"entrant_name": "Newcomer 7B", "kind": "model", "run_name": "first", "harness": "single-shot",
              "open_weights": "unknown", "reasoning": "unknown"}  # fmt: skip
    made = client.post("/runs/new/", fields)
    run = ModelRun.objects.get(name="first")
    assert made["Location"] == f"/runs/{run.pk}/"
    factories.submission(owner, run=run)
    factories.submission(owner, run=ensure_personal_run(by=owner))
    work = client.get("/submissions/").content.decode()
    assert 'href="/runs/"' in work
    assert re.findall(r'href="(/runs/\d+/)"', work) == [f"/runs/{run.pk}/"]
    listed = client.get("/runs/")
    assert [(row.pk, row.sent, row.problems) for row in listed.context["page"]] == [(run.pk, 1, 1)]


def test_a_run_is_for_its_owner_and_staff(client: Client, run: ModelRun) -> None:
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert client.get("/runs/99999999999999999999999/").status_code == 404
    client.force_login(factories.UserFactory())
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    assert send(client, run, packed(allreduce=factories.GOOD)).status_code == 404
    assert list(client.get("/runs/").context["page"]) == []
    client.force_login(factories.UserFactory(is_staff=True))
    assert client.get(f"/runs/{run.pk}/").status_code == 200


def test_progress_counts_what_holds_a_sample(client: Client, owner: User, run: ModelRun) -> None:
    first = factories.ProblemFactory()
    factories.ProblemFactory(slug="kept_apart", spec={**factories.SPEC, "track": "sam3"})
    factories.judged(owner, run=run, problem=first)
    factories.judged(owner, "incorrect", run=run, problem=first)
    newest = factories.submission(owner, run=run, problem=first)
    factories.judged(owner, "infra_error", run=run, problem=first)
    factories.submission(owner, run=run, problem=first, state="cancelled")
    factories.judged(owner, run=run, problem=first, mode="check")
    found = progress_of(run, newest.target)
    (row, missing) = found.track
    assert (row.sent, row.judged, row.correct, row.newest) == (3, 2, 1, newest)
    assert (missing.problem.slug, missing.sent, missing.newest) == ("allgather", 0, None)
    assert (found.problems_sent, found.solved, found.waiting, found.others) == (1, 1, 1, ())
    listed = client.get("/runs/").context["page"][0]
    assert (listed.sent, listed.judged, listed.correct, listed.problems) == (3, 2, 1, 1)
    Submission.objects.filter(verdict="correct", mode="score").update(
        removed="withdrawn", removed_at=row.newest.created_at
    )  # type: ignore[union-attr]
    assert progress_of(run, newest.target).solved == 0
    text = client.get(f"/runs/{run.pk}/?show=missing").content.decode()
    assert "/problems/allgather/" in text
    assert "/problems/allreduce/" not in text
    factories.submission(owner, run=run, problem=factories.ProblemFactory(slug="kept_apart"))
    found = progress_of(run, newest.target)
    assert [row.problem.slug for row in found.others] == ["kept_apart"]
    assert len(found.track) == 2


def test_samples_that_some_problems_lack_are_told(client: Client, owner: User, run: ModelRun) -> None:
    """One correct sample of k = 2 makes half a problem: a corrected file that is sent again costs the others."""
    for slug in ("allreduce", "allgather"):
        problem = factories.ProblemFactory(slug=slug)
        row = factories.judged(owner, run=run, problem=problem, sample=0)
    found = progress_of(run, row.target)
    assert (found.k, found.short) == (1, 0)
    assert "k = " not in client.get(f"/runs/{run.pk}/").content.decode()
    factories.judged(owner, run=run, problem=problem, sample=0, step=1)
    assert progress_of(run, row.target).k == 1  # a step is no sample
    factories.judged(owner, run=run, problem=problem, sample=1)
    found = progress_of(run, row.target)
    assert (found.k, found.short) == (2, 1)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert "over k = 2 samples a problem" in text
    assert "1 problem that was sent has fewer" in text


def test_a_page_of_a_long_run_asks_no_more(
    client: Client, owner: User, run: ModelRun, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        factories.judged(owner, run=run, problem=factories.ProblemFactory(slug=f"p{number}"))
    with django_assert_max_num_queries(15):
        client.get(f"/runs/{run.pk}/")


def test_files_in_other_modes_are_told_beside_the_progress(
    client: Client, owner: User, run: ModelRun
) -> None:
    address = f"/runs/{run.pk}/"
    assert "in other modes" not in client.get(address).content.decode()
    factories.submission(owner, run=run)
    factories.submission(owner, run=run, mode="profile", state="cancelled")
    factories.submission(owner, mode="check")
    assert "in other modes" not in client.get(address).content.decode()
    send(client, run, packed(allreduce=factories.GOOD), mode="check")
    factories.judged(owner, run=run, mode="quick")
    text = client.get(address).content.decode()
    assert "2 files in other modes than score, not counted here" in text
    link = f"/submissions/?run={run.pk}&amp;target=cpu4"
    assert f'href="{link}"' in text
    assert len(client.get(link.replace("&amp;", "&")).context["page"]) == 4
    client.force_login(factories.UserFactory(is_staff=True))
    text = client.get(address).content.decode()
    assert "2 files in other modes" in text
    assert link not in text


def test_the_count_of_what_was_sent_leads_to_it(client: Client, owner: User, run: ModelRun) -> None:
    problem, near = factories.ProblemFactory(), factories.ProblemFactory(slug="gemm_allreduce")
    rows = {factories.judged(owner, run=run, problem=problem).pk for _ in range(2)}
    factories.judged(owner, run=run, problem=near)
    factories.judged(owner, problem=problem)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    link = re.search(r'<td class="num"><a href="([^"]+)"[^>]*>2</a>', text)
    assert link is not None
    assert {row.pk for row in client.get(link[1].replace("&amp;", "&")).context["page"]} == rows
    client.force_login(factories.UserFactory(is_staff=True))
    assert '<td class="num">2</td>' in client.get(f"/runs/{run.pk}/").content.decode()


def key_in(answer: Any) -> str:
    return str(answer.context["form"]["key"].value())


def test_a_zip_is_taken_file_by_file_and_a_reload_sends_nothing_twice(client: Client, run: ModelRun) -> None:
    for heading in ("1 of 3 files taken</h2>", "0 of 3 files taken, 1 sent before</h2>"):
        file = packed(**{"1_allreduce_cuda": factories.GOOD, "2_allgather": "x = 1", "3_nothing": "x"})
        answer = send(client, run, file)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert heading in text
        assert "nothing" in text
        row = Submission.objects.get()
        assert (row.run, row.sample, row.lane, row.mode) == (run, 0, Submission.Lane.BATCH, "score")
        assert f'href="/submissions/{row.pk}/"' in text
    again = send(client, run, packed(allreduce=factories.GOOD), key="another").content.decode()
    assert "sent before, sample 0</span>" in again
    assert f'href="/submissions/{row.pk}/"' in again
    assert Submission.objects.count() == 1
    further = send(client, run, packed(allreduce=factories.GOOD), key="further", further="on")
    assert "yes, sample 1</span>" in further.content.decode()
    assert "counts for the k of the whole run" in further.content.decode()
    assert not further.context["form"]["further"].value()


def test_refused_files_are_said_to_be_lost_and_stand_by_number(client: Client, run: ModelRun) -> None:
    names = ("٣_allreduce", "10_allreduce", "2_allgather", "1_allreduce_triton")
    answer = send(client, run, packed(**dict.fromkeys(names, "x = 1")))
    shown = [outcome.file for outcome in answer.context["report"].outcomes]
    assert shown == [f"{name}.py" for name in reversed(names)]
    text = answer.content.decode()
    assert text.index("4 files were refused. Refused files are not kept") < text.index("What became of each")
    good = send(client, run, packed(allreduce=factories.GOOD), key="good")
    assert "Refused files" not in good.content.decode()


@pytest.mark.parametrize("mode", ["score", "quick"])
def test_another_zip_from_a_form_gone_back_to_is_taken(client: Client, run: ModelRun, mode: str) -> None:
    first = packed(allreduce=factories.GOOD)
    content = first.read()
    for _ in "once", "reloaded":
        send(client, run, SimpleUploadedFile("solutions.zip", content), mode=mode)
        assert Submission.objects.count() == 1
    answer = send(client, run, packed(allreduce=factories.GOOD + "# corrected\n"), mode=mode)
    assert "1 of 1 file taken</h2>" in answer.content.decode()
    assert Submission.objects.count() == 2
    factories.TargetFactory(slug="other4", title="other")
    elsewhere = send(client, run, SimpleUploadedFile("solutions.zip", content), mode=mode, target="other4")
    assert "1 of 1 file taken</h2>" in elsewhere.content.decode()


def test_the_answer_says_once_that_nobody_serves_the_target(client: Client, run: ModelRun) -> None:
    files = {"allreduce": factories.GOOD, "allgather": factories.GOOD}
    text = send(client, run, packed(**files)).content.decode()
    assert text.count("No host serves cpu4 now. What you send is kept") == 1


def test_a_second_zip_can_be_sent_from_the_answer_to_the_first(client: Client, run: ModelRun) -> None:
    factories.TargetFactory(slug="other4", title="other")
    first = send(client, run, packed(allreduce=factories.GOOD, allgather="x = 1"), source_public="on")
    assert first.context["form"]["source_public"].value() is True
    corrected = packed(allreduce=factories.GOOD + "# corrected\n", allgather=factories.GOOD)
    second = send(client, run, corrected, key=key_in(first))
    assert (first.context["report"].taken, second.context["report"].taken) == (1, 2)
    both = {"allreduce": factories.GOOD, "allgather": factories.GOOD}
    third = send(client, run, packed(**both), key=key_in(second), target="other4")
    assert third.context["report"].taken == 2
    assert third.context["form"]["target"].value() == "other4"
    fourth = send(client, run, packed(**both), key=key_in(third), target="other4", further="on")
    assert (fourth.context["report"].taken, Submission.objects.count()) == (2, 7)


def test_a_full_batch_lane_ends_a_zip_and_the_rest_is_counted(
    client: Client, run: ModelRun, settings: Any
) -> None:
    settings.SUBMIT_MAX_BATCH = 1
    answer = send(client, run, packed(**{f"{n}/1_allreduce": f"{factories.GOOD}# {n}" for n in range(5)}))
    text = answer.content.decode()
    assert "1 of 5 files taken</h2>" in text
    assert "3 files after the last one below, in the order of their names, were not tried." in text
    assert [outcome.status for outcome in answer.context["report"].outcomes] == [202, 429]


def test_an_unknown_parameter_is_refused_before_anything_is_sent(client: Client, run: ModelRun) -> None:
    fields = {"target": "cpu4", "mode": "score", "key": "k", "file": packed(allreduce=factories.GOOD)}
    for parameters in ("show=x", "target=nothing"):
        assert client.post(f"/runs/{run.pk}/?{parameters}", fields).status_code == 400
    assert not Submission.objects.exists()


def test_zips_of_the_page_and_of_the_api_share_a_limit(
    client: Client, api: Any, run: ModelRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.core.throttles.now", lambda: 960.0)
    monkeypatch.setattr("portal.core.throttles.rate_of", lambda scope: "2/min")
    fields = {"target": "cpu4", "file": packed(allreduce=factories.GOOD)}
    assert api(run.entrant.owner).post(f"/api/v1/runs/{run.pk}/upload/", fields).status_code == 202
    answers = [send(client, run, packed(allreduce=f"{factories.GOOD}# {key}"), key=key) for key in "ab"]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1]["Retry-After"] == "60"
    assert Submission.objects.count() == 2


def test_one_file_can_be_sent_from_the_page_of_a_run(client: Client, run: ModelRun) -> None:
    page = client.get(f"/runs/{run.pk}/").content.decode()
    link = re.search(r'href="(/submit/[^"]+)">Send one file<', page)
    assert link is not None
    text = client.get(link[1].replace("&amp;", "&")).content.decode()
    assert f'<option value="{run.pk}" selected>' in text
    assert '<option value="cpu4" selected>' in text
    before = factories.submission(run.entrant.owner, mode="check")
    initial = client.get(f"/submit/?run={run.pk}&from={before.pk}").context["form"].initial
    assert (initial["run"], initial["mode"]) == (run.pk, "check")


def test_the_form_for_one_file_takes_ones_own_runs_only(client: Client, run: ModelRun) -> None:
    foreign = factories.model_run(factories.UserFactory())
    for asked in (foreign.pk, 10**17):
        answer = client.get(f"/submit/?run={asked}")
        assert answer.status_code == 400
        assert "You have no run of this id." in answer.content.decode()
    named = ensure_model_run(by=run.entrant.owner, model="Newcomer 7B")
    assert client.get(f"/submit/?run={named.pk}").context["form"].initial["model"] == "Newcomer 7B"
    personal = ensure_personal_run(by=run.entrant.owner)
    initial = client.get(f"/submit/?run={personal.pk}").context["form"].initial
    assert not {"run", "model"} & initial.keys()
    client.force_login(factories.UserFactory(is_staff=True))
    assert client.get(f"/submit/?run={run.pk}").status_code == 400
    assert "Send one file" not in client.get(f"/runs/{run.pk}/").content.decode()


def test_the_form_stands_before_the_long_table(client: Client, run: ModelRun) -> None:
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert text.index("Problems sent") < text.index('id="upload-title"') < text.index('id="progress-title"')


def test_what_is_no_zip_comes_back_beside_its_field(client: Client, run: ModelRun) -> None:
    answer = send(client, run, SimpleUploadedFile("a.zip", b"no"))
    assert answer.status_code == 422
    assert "no zip archive" in str(answer.context["form"].errors["file"])
    text = answer.content.decode()
    assert "<title>Not sent: " in text
    summary = text[text.index('role="alert" tabindex="-1" autofocus') :].partition("</div>")[0]
    assert '<a href="#id_file">Zip</a>: This is no zip archive' in summary
    assert 'id="id_file_error"' in text
    fresh = client.get(f"/runs/{run.pk}/")
    assert "autofocus" not in fresh.content.decode()
    assert (
        fresh.context["form"]["key"].value() != client.get(f"/runs/{run.pk}/").context["form"]["key"].value()
    )
