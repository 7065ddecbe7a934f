"""A zip of many solutions for one run: each file through the door, each answered for."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluator.models import Host
from portal.submissions import services
from portal.submissions.models import ModelRun, Submission
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]
Api = Callable[..., Any]


@pytest.fixture
def run() -> ModelRun:
    factories.ProblemFactory(number=1)
    factories.ProblemFactory(slug="allgather", number=2)
    factories.TargetFactory()
    return factories.model_run(factories.UserFactory())


def packed(members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def send(api: Api, run: ModelRun, content: bytes, by: Any = None, headers: Any = None, **fields: Any) -> Any:
    form = {"file": SimpleUploadedFile("all.zip", content), "target": "cpu4", **fields}
    client = api(by or run.entrant.owner)
    return client.post(f"/api/v1/runs/{run.pk}/upload/", form, **(headers or {}))


def test_every_file_is_taken_or_told_why_not(api: Api, run: ModelRun) -> None:
    bundle = packed({"solution.py": factories.GOOD, "k.cu": "int x;"})
    answer = send(
        api,
        run,
        packed(
            {
                "mine/": "",
                "mine/1_allreduce_cuda.py": factories.GOOD,
                "mine/1_allreduce_triton.py": factories.GOOD + "# triton\n",
                "mine/allgather.zip": bundle,
                "mine/2_allreduce.py": factories.GOOD,
                "mine/3_all_gather.py": factories.GOOD,
                "mine/2_allgather.py": "def solve(x): pass",
                "mine/1_allreduce_cpp.py": b"x" * (1 << 20) + b"y",
                "mine/read me.txt": "hello",
                "mine/.DS_Store": "x",
                "__MACOSX/1_allreduce_cuda.py": "x",
            }
        ),
    )
    assert answer.status_code == 202, answer.content
    body = answer.json()
    assert (body["accepted"], body["refused"]) == (3, 5)
    outcomes = {row["file"].removeprefix("mine/"): (row["status"], row["code"]) for row in body["files"]}
    assert outcomes == {
        "1_allreduce_cuda.py": (202, ""),
        "1_allreduce_triton.py": (202, ""),
        "allgather.zip": (202, ""),
        "2_allreduce.py": (422, "name.numbers_disagree"),
        "3_all_gather.py": (422, "name.no_problem"),
        "2_allgather.py": (422, "source.no_solution"),
        "1_allreduce_cpp.py": (413, "zip.too_large"),
        "read me.txt": (422, "name.unknown_form"),
    }
    near = next(row["detail"] for row in body["files"] if "all_gather" in row["file"])
    assert "Did you mean allgather" in near
    rows = Submission.objects.filter(run=run)
    assert {(r.problem.slug, r.sample) for r in rows} == {
        ("allreduce", 0),
        ("allreduce", 1),
        ("allgather", 0),
    }
    assert {r.lane for r in rows} == {Submission.Lane.BATCH}


def test_the_same_key_makes_no_second_submissions(api: Api, run: ModelRun) -> None:
    content = packed({"1_allreduce.py": factories.GOOD, "2_allgather.py": factories.GOOD})
    key = {"HTTP_IDEMPOTENCY_KEY": "campaign-1"}
    first = send(api, run, content, headers=key).json()
    again = send(api, run, content, headers=key).json()
    assert [row["status"] for row in again["files"]] == [200, 200]
    assert [again[name] for name in ("accepted", "sent_before", "refused")] == [0, 2, 0]
    assert [row["id"] for row in again["files"]] == [row["id"] for row in first["files"]]
    assert Submission.objects.count() == 2


def test_a_key_belongs_to_the_whole_request(api: Api, run: ModelRun) -> None:
    one = {"1_allreduce.py": factories.GOOD, "2_allgather.py": "x = 1"}
    content, corrected = packed(one), packed(one | {"2_allgather.py": factories.GOOD})
    key = {"HTTP_IDEMPOTENCY_KEY": "campaign-1"}
    assert told(send(api, run, content, headers=key)) == [(202, 0), (422, None)]
    others = [
        send(api, run, corrected, headers=key),
        send(api, run, content, headers=key, further="true"),
        send(api, run, content, headers=key, mode="quick"),
        send(api, factories.model_run(run.entrant.owner), content, headers=key),
        api(run.entrant.owner, name="single").post(
            "/api/v1/submissions/",
            {"source": factories.GOOD, "problem": "1", "target": "cpu4"},
            format="json",
            **key,
        ),
    ]
    assert [(it.status_code, it.json()["code"]) for it in others] == [(409, "idempotency.key_reused")] * 5
    assert Submission.objects.count() == 1
    assert told(send(api, run, corrected, headers={"HTTP_IDEMPOTENCY_KEY": "campaign-2"})) == [
        (200, 0),
        (202, 0),
    ]


def test_a_key_of_one_file_is_none_for_a_zip(api: Api, run: ModelRun) -> None:
    key = {"HTTP_IDEMPOTENCY_KEY": "k"}
    sent = {"source": factories.GOOD, "problem": "1", "target": "cpu4"}
    assert api(run.entrant.owner).post("/api/v1/submissions/", sent, format="json", **key).status_code == 202
    answer = send(api, run, packed({"1_allreduce.py": factories.GOOD}), headers=key)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency.key_reused")


def test_a_zip_half_taken_is_completed_under_its_key(api: Api, run: ModelRun, settings: Any) -> None:
    settings.SUBMIT_MAX_BATCH = 1
    content = packed({f"{n}/1_allreduce.py": f"{factories.GOOD}# {n}" for n in range(3)})
    sent = {"headers": {"HTTP_IDEMPOTENCY_KEY": "k"}, "mode": "quick"}
    first = send(api, run, content, **sent).json()
    assert [row["status"] for row in first["files"]] == [202, 429]
    settings.SUBMIT_MAX_BATCH = 300
    again = send(api, run, content, **sent).json()
    assert [row["status"] for row in again["files"]] == [200, 202, 202]
    assert again["files"][0]["id"] == first["files"][0]["id"]


def test_a_zip_of_which_nothing_was_taken_leaves_its_key_free(api: Api, run: ModelRun) -> None:
    key = {"HTTP_IDEMPOTENCY_KEY": "k"}
    assert send(api, run, packed({"1_allreduce.py": "x = 1"}), headers=key).status_code == 422
    assert told(send(api, run, packed({"1_allreduce.py": factories.GOOD}), headers=key)) == [(202, 0)]


def told(answer: Any) -> list[tuple[int, int | None]]:
    return [(row["status"], row["sample"]) for row in answer.json()["files"]]


def test_a_corrected_zip_makes_samples_of_what_changed_only(api: Api, run: ModelRun) -> None:
    factories.TargetFactory(slug="other4", title="other")
    both = {"1_allreduce.py": factories.GOOD, "2_allgather.py": factories.GOOD}
    corrected = both | {"2_allgather.py": factories.GOOD + "# corrected"}
    first = send(api, run, packed(both))
    assert told(first) == [(202, 0), (202, 0)]
    second = send(api, run, packed(corrected | {"notes.txt": "x"}))
    assert told(second) == [(200, 0), (202, 1), (422, None)]
    assert [second.json()[name] for name in ("accepted", "sent_before", "refused")] == [1, 1, 1]
    assert second.json()["files"][0]["id"] == first.json()["files"][0]["id"]
    assert told(send(api, run, packed(both), further="true")) == [(202, 1), (202, 2)]
    one = packed({"1_allreduce.py": factories.GOOD})
    assert told(send(api, run, one, sample=1)) == [(200, 1)]
    assert told(send(api, run, one, sample=7)) == [(202, 7)]
    assert told(send(api, run, one, step=1)) == [(202, 8)]
    assert told(send(api, run, one, target="other4")) == [(202, 0)]
    for _ in range(2):
        assert told(send(api, run, one, mode="check")) == [(202, None)]
    other = factories.model_run(run.entrant.owner)
    assert told(send(api, other, one)) == [(202, 0)]
    twice = packed({f"{letter}/1_allreduce.py": factories.GOOD + "# twice" for letter in "ab"})
    assert told(send(api, other, twice)) == [(202, 1), (200, 1)]


def test_two_zips_at_a_time_make_one_sample(api: Api, run: ModelRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_while_another_is_taken(**asked: Any) -> Any:
        monkeypatch.undo()
        factories.submission(run.entrant.owner, run=run)
        return services.read_source(**asked)

    monkeypatch.setattr(services, "read_source", read_while_another_is_taken)
    assert told(send(api, run, packed({"1_allreduce.py": factories.GOOD}))) == [(200, 0)]
    assert Submission.objects.count() == 1


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ({"state": "cancelled"}, 202),
        ({"state": "done", "verdict": "infra_error"}, 202),
        ({"state": "done", "verdict": "incorrect"}, 200),
    ],
    ids=["cancelled", "a fault of ours", "incorrect"],
)
def test_a_file_whose_sample_was_freed_is_taken_again(
    api: Api, run: ModelRun, ended: dict[str, str], status: int
) -> None:
    one = packed({"1_allreduce.py": factories.GOOD})
    send(api, run, one)
    Submission.objects.update(**ended)
    assert told(send(api, run, one)) == [(status, 0)]


def test_a_target_that_nobody_serves_is_told_once(api: Api, run: ModelRun) -> None:
    content = packed({"1_allreduce.py": factories.GOOD, "2_allgather.py": factories.GOOD})
    for _ in range(2):
        body = send(api, run, content).json()
        assert body["notice"].startswith("No host serves cpu4 now.")
        assert [row["detail"] for row in body["files"]] == ["", ""]
    Submission.objects.update(state="done", verdict="correct")
    assert send(api, run, content).json()["notice"] == ""
    now = timezone.now()
    Host.objects.create(name="h", target=factories.TargetFactory(), registered_at=now, last_seen=now)
    assert send(api, run, content, further="true").json()["notice"] == ""


def test_a_file_that_was_sent_before_costs_one_query(api: Api, run: ModelRun) -> None:
    asked = []
    for count in (2, 6):
        content = packed({f"x{n}/1_allreduce.py": f"{factories.GOOD}# {count} {n}" for n in range(count)})
        key = {"HTTP_IDEMPOTENCY_KEY": f"campaign-{count}"}
        assert send(api, run, content, headers=key).json()["accepted"] == count
        with CaptureQueriesContext(connection) as found:
            send(api, run, content, headers=key)
        asked.append(len(found))
    assert asked[1] - asked[0] == 6 - 2


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"no zip", "zip.broken"),
        (b"", "zip.broken"),
        (packed({}), "zip.no_files"),
        (packed({"a/": ""}), "zip.no_files"),
        (packed({"notes.txt": "x"}), "upload.none_taken"),
        (packed({f"{n}.py": "x" for n in range(501)}), "zip.too_many"),
    ],
    ids=["no zip", "empty", "empty zip", "only folders", "nothing of use", "501 files"],
)
def test_a_zip_of_no_use_is_refused_whole(api: Api, run: ModelRun, content: bytes, code: str) -> None:
    answer = send(api, run, content)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert not Submission.objects.exists()


def test_a_bomb_is_read_no_further_than_the_limit(api: Api, run: ModelRun) -> None:
    answer = send(api, run, packed({"1_allreduce.py": b"#" * (20 << 20)}))
    assert answer.json()["files"][0]["code"] == "zip.too_large"


def test_only_ones_own_runs(api: Api, run: ModelRun) -> None:
    content = packed({"1_allreduce.py": factories.GOOD})
    answer = send(api, run, content, by=factories.UserFactory())
    assert (answer.status_code, answer.json()["code"]) == (404, "run.not_found")
    assert not Submission.objects.exists()


def test_a_whole_campaign_fits_the_batch_lane_but_not_more(api: Api, run: ModelRun, settings: Any) -> None:
    settings.SUBMIT_MAX_QUEUED, settings.SUBMIT_MAX_BATCH = 1, 3
    content = packed({f"x{n}/1_allreduce.py": f"{factories.GOOD}# {n}" for n in range(5)})
    body = send(api, run, content).json()
    assert [row["status"] for row in body["files"]] == [202, 202, 202, 429]
    assert (body["accepted"], body["refused"], body["not_tried"]) == (3, 1, 1)
    client = api(run.entrant.owner, name="b")
    quota = client.get("/api/v1/quota/").json()
    assert (quota["batch"], quota["batch_limit"], quota["queued"], quota["remaining"]) == (3, 3, 0, 1)
    form = {"source": factories.GOOD, "problem": "1", "target": "cpu4"}
    assert client.post("/api/v1/submissions/", form, format="json").status_code == 202
