"""Targets that nobody serves, and hosts that may run only samples: said at the door, in words."""

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from evaluator import services as queue
from evaluator.harness.samples import all_samples
from evaluator.harness.sandbox import HostReport
from evaluator.models import Attempt, Host
from evaluator.worker import environment
from portal.submissions.models import Submission
from problems.models import Target
from tests import factories
from tests.evaluator import build

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
URL = "/api/v1/submissions/"
CARDS = {"device": "cuda", "official": True, "timed": True}


@pytest.fixture
def cpu4() -> Target:
    factories.ProblemFactory()
    return factories.TargetFactory()


def host(target: Target, grade: Any = "full", **fields: Any) -> Host:
    now = timezone.now()
    report = HostReport(grade, ("bubblewrap is not installed",), "apt-get install bubblewrap")
    values = {"registered_at": now, "last_seen": now, "environment": environment(report)}
    return Host.objects.create(name=f"host {Host.objects.count()}", target=target, **(values | fields))


def order(**fields: Any) -> dict[str, Any]:
    return {"source": factories.GOOD, "problem": "allreduce", "target": "cpu4", **fields}


def test_what_nobody_serves_is_accepted_with_a_plain_word(
    api: Callable[..., Any], client: Client, cpu4: Target
) -> None:
    factories.TargetFactory(slug="h100x4", title="4 cards", spec=CARDS)
    host(cpu4)
    author = factories.UserFactory()
    answer = api(author).post(URL, order(target="h100x4"), format="json")
    assert answer.status_code == 202
    notice = answer.json()["notice"]
    assert notice.startswith("No host serves h100x4 now. ")
    assert "waits until a host does" in notice
    assert "Served now: cpu4." in notice
    assert api(author, name="b").get(f"{URL}{answer.json()['id']}/").json()["notice"] == notice
    client.force_login(author)
    assert notice in client.get(f"/submissions/{answer.json()['id']}/").content.decode()


def test_what_is_served_has_no_notice_and_lists_ask_nobody(
    api: Callable[..., Any], cpu4: Target, django_assert_max_num_queries: Any
) -> None:
    host(cpu4)
    client = api(factories.UserFactory())
    assert client.post(URL, order(), format="json").json()["notice"] == ""
    with django_assert_max_num_queries(4):
        client.get(URL)


@pytest.mark.parametrize(
    "fields",
    [
        {"last_seen": timezone.now() - timedelta(hours=1)},
        {"stopped_at": timezone.now()},
        {"state": "draining"},
        {"state": "quarantined"},
    ],
    ids=["silent", "stopped", "draining", "quarantined"],
)
def test_a_host_that_takes_nothing_does_not_serve(
    api: Callable[..., Any], cpu4: Target, fields: dict[str, Any]
) -> None:
    host(cpu4, **fields)
    notice = api(factories.UserFactory()).post(URL, order(), format="json").json()["notice"]
    assert "No host serves cpu4 now." in notice
    assert "No target at all is served" in notice


def test_the_notice_ends_once_a_host_has_it_or_it_is_final(api: Callable[..., Any], cpu4: Target) -> None:
    author = factories.UserFactory()
    client = api(author)
    for state in ("running", "cancelled"):
        assert client.get(f"{URL}{factories.submission(author, state=state).pk}/").json()["notice"] == ""
    assert client.get(f"{URL}{factories.submission(author).pk}/").json()["notice"] != ""


def test_the_form_says_beside_the_targets_what_is_served(client: Client, cpu4: Target) -> None:
    factories.TargetFactory(slug="h100x4", title="4 cards", spec=CARDS)
    host(cpu4)
    client.force_login(factories.UserFactory())
    page = client.get("/submit/").content.decode()
    assert "h100x4: 4 cards (no host serves it now)" in page
    assert "cpu4: 4 gloo ranks on CPU</option>" in page
    assert "Served now: cpu4. What you send for another target is kept and waits" in page


def test_a_host_without_a_sandbox_refuses_at_the_door(
    api: Callable[..., Any], client: Client, cpu4: Target
) -> None:
    host(cpu4, "none")
    author = factories.UserFactory()
    answer = api(author).post(URL, order(), format="json")
    assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    body = answer.json()
    assert (body["code"], body["remedy"]) == ("host.no_sandbox", "apt-get install bubblewrap")
    assert "bubblewrap is not installed" in body["detail"]
    assert "apt-get install bubblewrap" in body["detail"]
    client.force_login(author)
    page = client.post("/submit/", {**order(), "mode": "score"})
    assert page.status_code == 422
    assert "apt-get install bubblewrap" in page.content.decode()
    assert not Submission.objects.exists()


def test_bundled_samples_pass_where_there_is_no_sandbox_also_packed(
    api: Callable[..., Any], cpu4: Target
) -> None:
    host(cpu4, "none")
    sample = next(row for row in all_samples() if row.problem == "allreduce" and row.verdict == "correct")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("solution.py", sample.path.read_bytes())
    for content, name in ((sample.path.read_bytes(), "a.py"), (packed.getvalue(), "a.zip")):
        fields = {"file": SimpleUploadedFile(name, content), "problem": "allreduce", "target": "cpu4"}
        assert api(factories.UserFactory()).post(URL, fields).status_code == 202


CUDA = {
    "by keyword": "load_inline(name='k', cpp_sources='', cuda_sources=[SOURCE])",
    "by place": "cpp_extension.load_inline('k', '', SOURCE)",
    "by our helper": "compile_cuda_extension('k', SOURCE)",
    "Triton": "triton.jit(SOURCE)",
    "Triton by another name": "load()\n    import triton as tr\n    return tr.jit(SOURCE)",
    "Triton's decorator alone": "load()\n    from triton import cdiv, jit as kernel",
    "a jit that is not Triton's": "load()\n    from triton import cdiv\n    return torch.jit(SOURCE)",
    "C++ alone": "load_inline(name='k', cpp_sources=SOURCE, cuda_sources=None)",
    "a word in a text": "'compile_cuda_extension(), cuda_sources=, triton.jit'",
}


@pytest.mark.parametrize("way", CUDA)
def test_what_runs_on_cards_only_is_taken_for_a_target_without_them_with_a_word(
    api: Callable[..., Any], client: Client, cpu4: Target, way: str
) -> None:
    host(cpu4)
    text = f"{factories.GOOD}\n\ndef build():\n    return {CUDA[way]}\n"
    author = factories.UserFactory()
    answer = api(author).post(URL, order(source=text), format="json")
    notice = answer.json()["notice"]
    client.force_login(author)
    page = client.post("/submit/", {**order(source=text), "mode": "score"}, follow=True).content.decode()
    assert answer.status_code == 202
    if way in ("C++ alone", "a word in a text", "a jit that is not Triton's"):
        assert notice == ""
        assert "run on cards only" not in page
    else:
        assert ("Triton kernels" if way.startswith("Triton") else "CUDA sources") in notice
        assert "cpu4 has none" in notice
        assert notice in page


def test_a_repeated_request_brings_the_word_about_cards_again_while_it_waits(
    api: Callable[..., Any], cpu4: Target
) -> None:
    host(cpu4)
    sent = order(source=f"{factories.GOOD}\ncompile_cuda_extension('k', '')\n")
    author = api(factories.UserFactory())

    def post() -> Any:
        return author.post(URL, sent, format="json", HTTP_IDEMPOTENCY_KEY="k")

    first, again = post(), post()
    assert (first.status_code, again.status_code) == (202, 200)
    assert "CUDA sources" in first.json()["notice"]
    assert again.json()["notice"] == first.json()["notice"]
    Submission.objects.update(state="cancelled")
    assert post().json()["notice"] == ""


def test_a_source_is_read_for_cards_after_its_author_is_unlocked(
    api: Callable[..., Any], cpu4: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(cpu4)
    inside: list[list[str]] = []
    monkeypatch.setattr(
        "portal.submissions.cards.notice", lambda *_: inside.append(list(connection.savepoint_ids)) or ""
    )
    assert api(factories.UserFactory()).post(URL, order(), format="json").status_code == 202
    assert inside == [[]]


def test_cuda_files_in_a_zip_are_told_of_too_and_a_target_with_cards_takes_all_in_silence(
    api: Callable[..., Any], cpu4: Target
) -> None:
    host(cpu4)
    host(factories.TargetFactory(slug="h200x2", spec={"device": "cuda", "timed": True}))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("solution.py", factories.GOOD)
        archive.writestr("k.cu", "int x;")
    for target, told in (("cpu4", True), ("h200x2", False)):
        fields = {
            "file": SimpleUploadedFile("a.zip", packed.getvalue()),
            "problem": "allreduce",
            "target": target,
        }
        assert ("CUDA sources" in api(factories.UserFactory()).post(URL, fields).json()["notice"]) is told


@pytest.mark.parametrize("other", ["full", "partial"])
def test_one_host_with_a_sandbox_is_enough(api: Callable[..., Any], cpu4: Target, other: str) -> None:
    host(cpu4, "none")
    host(cpu4, other)
    assert api(factories.UserFactory()).post(URL, order(), format="json").status_code == 202


def test_hosts_of_an_older_version_that_say_nothing_are_trusted_to_refuse_themselves(
    api: Callable[..., Any], cpu4: Target
) -> None:
    host(cpu4, environment={})
    assert api(factories.UserFactory()).post(URL, order(), format="json").status_code == 202


@pytest.mark.parametrize("name", ["kernel.py", "kernel.ZIP", "kernel"])
def test_a_zip_is_stored_as_one_whatever_it_is_called(
    api: Callable[..., Any], cpu4: Target, name: str
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("solution.py", factories.GOOD)
    fields = {"file": SimpleUploadedFile(name, packed.getvalue()), "problem": "allreduce", "target": "cpu4"}
    assert api(factories.UserFactory()).post(URL, fields).json()["source_name"].endswith(".zip")


@pytest.mark.parametrize("silent", [True, False])
def test_a_host_that_fell_silent_costs_its_author_no_sample(
    api: Callable[..., Any], cpu4: Target, silent: bool
) -> None:
    """Its lease ran out and nobody reaped yet: it still reads as running, but nobody judges it."""
    run = factories.model_run(factories.UserFactory())
    client = api(run.entrant.owner)
    sent = client.post(URL, order(run=run.pk), format="json").json()
    lease = queue.lease(host=queue.register_host(name="one", target="cpu4"))
    assert lease is not None
    assert queue.set_stage(token=lease.token, stage="timing")
    if silent:
        Attempt.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    told = client.post(f"{URL}{sent['id']}/cancel/").json()
    assert (told["state"], told["stage"]) == ("cancelled", "" if silent else "timing")
    assert ("keeps its sample" in told["message"]) is not silent
    again = client.post(URL, order(run=run.pk), format="json").json()
    assert again["sample"] == sent["sample"] + (0 if silent else 1)
    queue.reap()
    assert Submission.objects.get(pk=sent["id"]).state == "cancelled"
    if silent:
        assert not queue.complete(token=lease.token, result=build.result()), "nor does its late word stand"
