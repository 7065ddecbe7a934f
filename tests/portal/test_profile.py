"""Mechanisms, findings, timeline and trace on the submission page, and who sees which of them."""

import gzip
import json
from typing import Any

import pytest
from django.test import Client

from evaluator import selectors, services
from evaluator.models import Artifact
from evaluator.runner import run_lease
from leaderboard.words import mechanism
from portal.pages.profile import totals
from portal.submissions.models import Submission
from tests import factories
from tests.evaluator import build
from tests.evaluator.fake_judge import TIMELINE, FakeJudge
from tests.evaluator.test_runner import Watch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]

FINDING = {
    "kind": "host_stall", "title": "The host stalls between operators", "sentence": "Nothing ran for 3000 µs.",
    "cost_us": 3000.0, "share": 0.5, "rank": 1, "line": 7, "count": 2,
}  # fmt: skip
SEEN: dict[str, Any] = {
    "mechanisms": [
        {"name": "SM load/store", "certain": False, "share": 0.61},
        {"name": "NCCL", "certain": True, "share": None},
    ],
    "movement": {
        "own_share": 0.61,
        "told": "61 % of the device time ran in kernels that the file built.",
        "collectives": [{"name": "all_reduce", "calls": 2, "us": 41.5}],
    },
    "mechanism_evidence": [
        {"name": "SM load/store", "where": "secret_pull", "why": "ld.global beside waits"}
    ],
    "kernels": [{"kernel": "_Z11secret_pull", "arch": "sm_90a", "registers": 40, "spill_load_bytes": 16}],
    "findings": [FINDING],
    "look_notes": ["rank 3: no operator log: secret reason"],
}
PRIVATE = ("secret_pull", "secret reason", "Nothing ran for 3000", "/trace/", "data-chart")


def page(client: Client, row: Submission) -> str:
    return client.get(f"/submissions/{row.pk}/").content.decode()


@pytest.fixture
def row() -> Submission:
    return factories.profiled(result=SEEN)


def test_the_author_sees_mechanisms_findings_and_timeline(client: Client, row: Submission) -> None:
    client.force_login(row.author)

    text = page(client, row)

    for part in (
        "SM load/store",
        "possible: machine code alone",
        "61",
        "all_reduce",
        "Nothing ran for 3000 µs.",
    ):
        assert part in text
    assert '<a href="#L7">line 7</a>' in text
    assert "secret_pull" in text
    figure = json.loads(
        text.split('<script id="chart-timeline" type="application/json">')[1].split("</script>")[0]
    )
    assert {trace["name"] for trace in figure["data"]} == {"call", "operators"}
    assert figure["layout"]["yaxis"]["categoryarray"][-1] == "rank 0 call"
    assert "3 of the shortest bars are left out" in text
    assert text.count("40.0 µs") == 2


def test_others_see_mechanisms_and_nothing_that_quotes_the_source(client: Client, row: Submission) -> None:
    text = page(client, row)
    result = client.get(f"/api/v1/submissions/{row.pk}/result/").json()

    assert "SM load/store" in text
    assert "quote the source, which is private" in text
    assert not [part for part in PRIVATE if part in text]
    assert result.keys() >= {"mechanisms", "movement"}
    assert not result.keys() & {"findings", "kernels", "mechanism_evidence", "look_notes"}


def test_the_hash_of_a_private_source_is_private_in_every_size(client: Client, row: Submission) -> None:
    attempt = row.attempts.get()
    unit = {"name": "c0ffee_extension", "key": "c0ffee", "cubin_sha256": "c0ffee"}
    build = {"seconds": 3.5, "cached": False, "units": [unit]}
    cell = {"size": "tiny", "verdict": "correct", "source_sha256": "c0ffee", "build": build}
    attempt.result = (attempt.result or {}) | cell | {"cells": [cell]}
    attempt.save()
    path = f"/api/v1/submissions/{row.pk}/result/"
    closed = client.get(path)
    assert "c0ffee" not in closed.content.decode()
    assert closed.json()["build"] == {"seconds": 3.5, "cached": False}
    Submission.objects.filter(pk=row.pk).update(source_public=True)
    assert client.get(path).content.decode().count("c0ffee") == 8


def test_a_collective_counts_once_in_the_numbers() -> None:
    """It is drawn twice: while the host asks for it, and while the backend is at work on it."""
    bars = [
        [0, "host", "collective", 0.0, 30.0, "c10d::allreduce_"],
        [0, "collectives", "collective", 5.0, 400.0, "gloo:all_reduce"],
        [1, "host", "collective", 0.0, 25.0, "c10d::allreduce_"], [1, "host", "operator", 30.0, 7.0, "aten::add"],
    ]  # fmt: skip
    drawn = {"bars": bars, "kinds": {"operator": "operators", "collective": "collectives at work"}}
    assert [dict(row["cells"]) for row in totals(drawn)] == [
        {"operators": 0.0, "collectives at work": 400.0},
        {"operators": 7.0, "collectives at work": 25.0},
    ]


def test_an_open_source_opens_the_trace(client: Client, row: Submission) -> None:
    assert client.get(f"/submissions/{row.pk}/trace/").status_code == 404
    Submission.objects.filter(pk=row.pk).update(source_public=True)

    for path in (f"/submissions/{row.pk}/trace/", f"/api/v1/submissions/{row.pk}/trace/"):
        answer = client.get(path)
        assert (answer.status_code, answer.content, answer["Content-Type"]) == (
            200,
            b"a trace",
            "application/gzip",
        )
        assert answer["Content-Disposition"].endswith('.json.gz"')


def test_a_cpu_result_tells_of_collectives_and_of_no_mechanism(client: Client) -> None:
    told = "On a CPU target there is no mechanism to tell: gloo moves all data through sockets on the host."
    seen = {"mechanisms": [], "movement": {"own_share": None, "told": told, "collectives": []}}

    text = page(client, factories.judged(result=seen))

    assert told not in text
    assert "No collective of torch.distributed was seen" in text
    assert "data-chart" not in text


def lease_of(mode: str) -> services.Lease:
    sent = build.submission("# fake: correct\n", mode=mode)
    host = services.register_host(name="one", target=sent.target.slug)
    lease = services.lease(host=host)
    assert lease is not None
    return lease


def test_the_files_of_a_profile_are_kept_with_its_attempt() -> None:
    lease = lease_of("profile")

    run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch())

    kept = selectors.artifact(lease.submission.pk, "timeline.json")
    assert kept is not None
    assert (kept.bytes, kept.file.read()) == (len(TIMELINE), TIMELINE)
    assert Artifact.objects.count() == 2


def test_other_modes_keep_none() -> None:
    lease = lease_of("score")

    run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch())

    assert not Artifact.objects.exists()


def test_a_file_of_a_lost_lease_or_beyond_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = lease_of("profile")
    keep = {"token": lease.token, "name": "trace.json.gz"}
    monkeypatch.setattr("evaluator.services.artifacts.MAX_BYTES", 100)

    assert not services.keep_artifact(**keep, content=b"x" * 101)
    assert services.keep_artifact(**keep, content=gzip.compress(b"x"))
    assert not services.keep_artifact(**keep, content=b"again")
    services.release(token=lease.token)
    assert not services.keep_artifact(token=lease.token, name="timeline.json", content=b"{}")
    assert Artifact.objects.count() == 1


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"name": "TMA", "certain": True, "share": 0.5}, "TMA 50%"),
        ({"name": "SM load/store", "certain": False, "share": None}, "SM load/store?"),
        ("NCCL", "NCCL"),
    ],
)
def test_a_mechanism_in_words_on_a_board(entry: Any, words: str) -> None:
    assert mechanism(entry) == words
