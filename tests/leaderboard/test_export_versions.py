"""Versions of the data set: complete, named by content, withheld when something in them was taken back."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from leaderboard import export_versions, exports, review, tasks
from leaderboard.models import ExportVersion, Score
from portal.accounts.models import User
from portal.submissions.models import Submission
from tests.evaluator import build
from tests.leaderboard.test_feeds import confirmed
from tests.leaderboard.test_models import model_run, refresh, score

pytestmark = pytest.mark.django_db

RECOUNT = Path(__file__).with_name("recount.py")


@pytest.fixture
def campaign() -> list[Any]:
    """Six runs of up to twelve samples over seven problems, of models and others, agents and one unfinished."""
    draw = random.Random(7)
    slugs = [f"p{number}" for number in range(7)]
    for slug in slugs:
        build.problem(slug)
    build.problem("beyond", spec={"track": "extra"})
    plans = [("quick", 3, {}), ("wide", 12, {"prompt_variant": "cuda"}), ("agent", 1, {"harness": "agentic"}),
             ("one", 1, {"date": None}), ("lost", 2, {}), ("doubted", 2, {"verified": False})]  # fmt: skip
    runs = []
    for name, samples, fields in plans:
        run = model_run(name, **fields)
        chance = {"lost": 0.0}.get(name, draw.uniform(0.2, 0.9))
        for slug in [*slugs[:6], "beyond"]:
            for sample in range(samples):
                for step in range(3 if name == "agent" else 1):
                    speed = draw.lognormvariate(0.2, 0.6) if draw.random() < chance else None
                    verdict = "" if speed else draw.choice(["incorrect", "timeout", "build_error"])
                    score(run, slug, speedup=speed, verdict=verdict, sample=sample, step=step)
        runs.append(run)
    person = build.run(build.entrant("ann", kind="person"), verified=True)
    score(person, "p0", speedup=2.0)
    confirmed()
    waiting = Score.objects.filter(run=runs[0], ranked=True, speedup__gt=1).first()
    assert waiting is not None
    Score.objects.filter(pk=waiting.pk).update(provisional=True)
    hidden = Score.objects.filter(run=runs[1], ranked=True).last()
    assert hidden is not None
    Submission.objects.filter(pk=hidden.submission_id).update(results_public=False)
    agent = Score.objects.filter(run=runs[2], ranked=True, submission__step=1)
    for number, good in enumerate(
        agent.order_by("pk")[:3]
    ):  # the last step is gone: the one before does not count
        last = Submission.objects.filter(
            run=good.run, problem=good.problem, sample=good.submission.sample, step=2
        )
        last.update(results_public=False) if number else last.get().scores.all().delete()
    older = model_run("old", entrant=runs[0].entrant, date=timezone.now().date().replace(year=2020))
    score(older, "p0", speedup=50.0)
    for run in [*runs, older]:
        refresh(run)
    return runs


def unpack(version: ExportVersion, folder: Path) -> None:
    for name, facts in version.files.items():
        with default_storage.open(facts["path"]) as source:
            (folder / name).write_bytes(source.read())


def test_the_version_alone_reproduces_every_printed_figure(client: Client, campaign, tmp_path: Path) -> None:
    unpack(export_versions.build(), tmp_path)
    told = subprocess.run(
        [sys.executable, "-I", str(RECOUNT), str(tmp_path), "cpu4", "tiny"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    recounted = [line.split("  ") for line in told.stdout.splitlines()]
    page = client.get("/boards/models/?target=cpu4").content.decode()
    body = page.split('class="board"')[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row) for row in body.split("<tr>")[1:]]
    assert len(rows) == len(recounted) == 5
    for row, words in zip(rows, recounted, strict=True):
        at = 0
        for word in words:  # in the order of the columns, each after the one before
            found = row.find(word, at)
            assert found >= 0, (word, row)
            at = found + len(word)
    board = client.get("/boards/models.json?target=cpu4").json()["rows"]
    assert {row["n"] for row in board} == {1, 2, 3, 12}, "one, several and many samples are compared"
    assert any(row["solved"] != row["faster"] for row in board)


def test_parquet_holds_the_same_rows_with_units(campaign, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    unpack(export_versions.build(), tmp_path)
    for name, columns in (("scores", exports.SCORES), ("runs", exports.RUNS)):
        lines = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        table = parquet.read_table(tmp_path / f"{name}.parquet")
        assert table.to_pylist() == lines
        assert list(table.column_names) == list(columns)
        field = table.schema.field(next(iter(columns)))
        assert field.metadata[b"meaning"].decode() == next(iter(columns.values())).meaning
    card = (tmp_path / "data_card.md").read_text()
    for name, column in {**exports.SCORES, **exports.RUNS}.items():
        assert f"| {name} | {column.unit or '–'} | {column.meaning} |" in card
    assert "Licence: " in card


def test_a_version_is_named_by_its_content(campaign) -> None:
    first = export_versions.build()
    assert export_versions.build() == first, "nothing changed: no new version"
    score(campaign[0], "p6", speedup=1.5)
    second = export_versions.build()
    assert second.content_hash != first.content_hash
    assert second.scores == first.scores + 1
    for facts in second.files.values():
        with default_storage.open(facts["path"]) as source:
            content = source.read()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (facts["bytes"], facts["sha256"])


@pytest.mark.parametrize("how", ["disqualified", "hidden"])
def test_what_is_taken_back_leaves_the_files_at_once(client: Client, campaign, how: str) -> None:
    version = export_versions.build()
    path = f"/boards/export/{version.pk}/scores.jsonl"
    row = Score.objects.filter(run=campaign[1], ranked=True, submission__results_public=True).first()
    assert row is not None
    for _ in "twice":
        assert str(row.submission_id) in b"".join(client.get(path)).decode()
    listed = client.get("/boards/export/versions.json").json()["versions"][0]
    assert (listed["withheld"], listed["files"]["scores.jsonl"]["bytes"] > 0) == (False, True)
    if how == "disqualified":
        review.disqualify(submission=row.submission, by=build.staff(), reason="copied")
    else:
        Submission.objects.filter(pk=row.submission_id).update(results_public=False)
    gone = client.get(path)
    assert gone.status_code == 410
    assert "taken back" in gone.content.decode()
    listed = client.get("/boards/export/versions.json").json()["versions"][0]
    assert (listed["withheld"], listed["files"]) == (True, {})
    assert "withheld</span>" in client.get("/boards/export/").content.decode()
    newer = export_versions.build()
    lines = b"".join(client.get(f"/boards/export/{newer.pk}/scores.jsonl")).decode()
    assert str(row.submission_id) not in lines
    assert len(lines.splitlines()) == newer.scores == version.scores - 1


def test_a_failed_build_leaves_nothing_behind(campaign, monkeypatch) -> None:
    def full(name: str, content: Any) -> str:
        raise OSError("disk full")

    kept: list[str] = []
    real = default_storage.save

    def save(name: str, content: Any) -> str:
        if name.endswith("runs.parquet"):
            return full(name, content)
        kept.append(real(name, content))
        return kept[-1]

    monkeypatch.setattr(default_storage, "save", save)
    with pytest.raises(OSError, match="disk full"):
        export_versions.build()
    assert kept
    assert not any(default_storage.exists(path) for path in kept)
    assert not ExportVersion.objects.exists()


def test_pages_and_files_of_versions(client: Client, campaign) -> None:
    assert "No version was built yet" in client.get("/boards/export/").content.decode()
    out = io.StringIO()
    call_command("build_export", stdout=out)
    version = ExportVersion.objects.get()
    assert f"{version.scores} scores" in out.getvalue()
    page = client.get("/boards/export/").content.decode()
    for name in export_versions.NAMES:
        path = f"/boards/export/{version.pk}/{name}"
        assert path in page
        answer = client.get(path)
        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
        assert "attachment" in answer["Content-Disposition"]
        assert b"".join(answer)
    assert client.get(f"/boards/export/{version.pk}/passwd").status_code == 404
    assert client.get("/boards/export/999/scores.jsonl").status_code == 404


def test_only_staff_order_a_version_and_a_worker_builds_it(client: Client, campaign, settings) -> None:
    assert client.post("/boards/export/build/").status_code == 302
    client.force_login(User.objects.create(username="somebody"))
    assert client.post("/boards/export/build/").status_code == 403
    assert client.get("/boards/export/build/").status_code == 405
    client.force_login(build.staff())
    assert "Build a new version" in client.get("/boards/export/").content.decode()
    answer = client.post("/boards/export/build/", follow=True).content.decode()
    assert "Asked for a new version" in answer
    assert not ExportVersion.objects.exists(), "the web process leaves it to a worker"
    tasks.build_export.run()
    assert ExportVersion.objects.count() == 1


def test_web_processes_do_not_load_what_only_the_task_needs() -> None:
    code = (
        "import sys; from portal.wsgi import application; from django.urls import get_resolver;"
        "get_resolver().url_patterns; import leaderboard.export_views;"
        "print(sorted({'torch', 'pyarrow'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
