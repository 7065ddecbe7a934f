"""Results made elsewhere: taken in as they are, marked everywhere, and without a place."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from leaderboard.imports import NOTE, import_result
from leaderboard.models import ImportedResult, Score
from leaderboard.page_cache import board_version
from tests.evaluator import build
from tests.factories import SPEC
from tests.leaderboard.test_feeds import confirmed
from tests.leaderboard.test_models import model_run, score

pytestmark = pytest.mark.django_db

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "measurements"


def run(*paths: Path, fails: bool = False) -> str:
    out = io.StringIO()
    if fails:
        with pytest.raises(CommandError):
            call_command("import_results", *paths, stdout=out)
    else:
        call_command("import_results", *paths, stdout=out)
    return out.getvalue()


def made_elsewhere(**fields: Any) -> dict[str, Any]:
    return build.result(speedup=9.0) | {"file": "fast_cuda.py", "source_sha256": "a" * 64} | fields


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def places() -> None:
    build.problem("allreduce", spec=dict(SPEC))
    for slug in ("h100x4", "h200x4"):
        build.card_target(slug)
    build.target()


def test_the_stored_measurements_come_in_once(client: Client) -> None:
    build.card_target("h200x1")
    stored = sorted(MEASURED.glob("h200x1_*.json"))
    documents = {path.name: json.loads(path.read_text()) for path in stored}
    cheats = [it for it in documents.values() if it.get("import") is False]
    results = [row for it in documents.values() if it not in cheats for row in it.get("results", [])]
    for slug in {row["problem"]["slug"] for row in results}:
        build.problem(slug, spec=dict(SPEC))
    first = run(*stored, fails=True)
    tests = [path for path in stored if "_selftest_" in path.name]
    for path in tests:
        assert f"{path.name}: refused: holds no results of the harness (found: ok, target," in first
    assert "h200x1_cheats_20261130.json: left out: Seven CUDA files that cheat, on h200x1" in first
    left = sum(len(it["results"]) for it in cheats)
    told = f"{len(results)} imported, 0 known before, {left} left out, {len(tests)} refused"
    assert f"{len(stored)} files: {told}" in first
    assert tests
    assert left == 7 * len(cheats)
    assert len(results) >= 90
    assert f"0 imported, {len(results)} known before" in run(*stored, fails=True)
    assert ImportedResult.objects.count() == len(results)
    assert set(ImportedResult.objects.values_list("target__slug", flat=True)) == {"h200x1"}
    row = ImportedResult.objects.filter(label="allgather_vector_pull_cuda.py")[0]
    assert (row.verdict, row.protocol, row.isolation_grade) == ("correct", "check", "full")
    assert row.environment["cards"][0] == "NVIDIA H200"
    assert row.measured_on is not None
    assert Score.objects.count() == 0
    document = client.get("/api/v1/leaderboards/h200x1/imported/").json()
    assert (document["note"], document["page"], document["pages"]) == (NOTE, 1, -(-len(results) // 50))
    assert all(line["imported"] and line["place"] is None for line in document["rows"])
    page = client.get("/boards/imported/?target=h200x1").content.decode()
    assert page.count(NOTE) >= 50
    assert not ImportedResult.objects.filter(measured_on=None).exists()
    assert not ImportedResult.objects.filter(label__startswith="g0").exists(), "a cheat"


def test_what_is_stored_to_cheat_or_with_planted_faults_says_so() -> None:
    for path in MEASURED.glob("*.json"):
        if "_cheats_" in path.name or "_profile_" in path.name:
            assert json.loads(path.read_text())["import"] is False, path.name


def test_faults_of_ours_are_left_out_with_a_line_and_are_no_failure(places, tmp_path: Path) -> None:
    fault = {"file": "a.py", "verdict": "infra_error", "message": "not done within 45 s"}
    kept = {"results": [fault, made_elsewhere(), fault]}
    told = run(write(tmp_path / "h_paper_20261128.json", kept))
    assert "h_paper_20261128.json: left out: 2 rows without a verdict: faults and time limits" in told
    assert "1 files: 1 imported, 0 known before, 2 left out, 0 refused" in told
    planted = {"what": "A planted wait", "import": False, "results": [made_elsewhere(file="planted.py")]}
    assert "b.json: left out: A planted wait" in run(write(tmp_path / "b.json", planted))
    assert [str(row.measured_on) for row in ImportedResult.objects.all()] == ["2026-11-28"]


def test_no_cheat_comes_in_alone_or_in_a_list_or_by_an_unclear_word(places, tmp_path: Path) -> None:
    cheat = made_elsewhere(file="cheat.py", what="It cheats", **{"import": False})
    assert "one.json: left out: It cheats" in run(write(tmp_path / "one.json", cheat))
    told = run(write(tmp_path / "list.json", [cheat, made_elsewhere()]))
    assert "list.json, result 1: left out: It cheats" in told
    assert "1 files: 1 imported, 0 known before, 1 left out, 0 refused" in told
    for word in ("false", 0, None, []):
        unclear = {"import": word, "results": [made_elsewhere(file="cheat.py")]}
        told = run(write(tmp_path / "unclear.json", unclear), fails=True)
        assert f'has "import": {json.dumps(word)}, which is neither true nor false' in told
    run(write(tmp_path / "yes.json", {"import": True, "results": [made_elsewhere(file="fair.py")]}))
    assert {row.label for row in ImportedResult.objects.all()} == {"fast_cuda.py", "fair.py"}


def test_a_number_that_no_float_holds_stops_no_import(places, tmp_path: Path) -> None:
    huge = 10**400
    rows = [
        made_elsewhere(timing={"speedup": huge}, roofline={"utilisation": -huge}, file="///"),
        made_elsewhere(file="b.py"),
    ]
    assert "2 imported" in run(write(tmp_path / "huge.json", rows))
    first = ImportedResult.objects.get(speedup=None)
    assert (first.label, first.utilisation) == ("without a name", None)


@pytest.mark.parametrize("version", ["", "1", "999"])
def test_a_result_by_another_judge_is_not_called_older_than_it_is(
    client: Client, places, tmp_path: Path, version: str
) -> None:
    run(write(tmp_path / "other.json", [made_elsewhere(harness_version=version)]))
    (row,) = client.get("/boards/imported.json").json()["rows"]
    assert (row["current"], row["stale"]) == (False, "another version of the judge")


def test_the_list_says_how_good_a_figure_is_and_where_it_comes_from(
    client: Client, places, tmp_path: Path
) -> None:
    timing = {
        "speedup": 1.5,
        "speedup_low": 1.4,
        "speedup_high": 1.6,
        "solution_ms": 1.0,
        "reference_ms": 1.5,
    }
    rows = [
        made_elsewhere(file="quick.py", protocol="quick"),
        made_elsewhere(
            file="problems/samples/paper.py", timing=timing, flags=["launch_bound"], harness_version="2"
        ),
        made_elsewhere(file="faster.py"),
    ]
    score(model_run("m"), "allreduce", speedup=1.1)
    confirmed()
    assert "/boards/imported/" not in client.get("/boards/cpu4/").content.decode()
    run(write(tmp_path / "two_20261129.json", rows))
    assert 'href="/boards/imported/"' in client.get("/boards/cpu4/").content.decode()
    for address in ("/boards/imported.json", "/api/v1/leaderboards/cpu4/imported/"):
        found = client.get(address).json()["rows"]
        assert [row["label"] for row in found] == ["faster.py", "paper.py", "quick.py"], (
            "the full protocol first"
        )
        assert [(row["current"], row["stale"]) for row in found[:2]] == [
            (True, ""), (False, "another version of the judge"),
        ]  # fmt: skip
    page = client.get("/boards/imported/").content.decode()
    for part in ("1.40× – 1.60×", "idle for more than half", "harness 2", "two_20261129.json", "2026-11-29",
                 "another version of the judge"):  # fmt: skip
        assert part in page
    below = client.get("/boards/cpu4/allreduce.json").json()["imported"]
    assert [row["label"] for row in below] == ["faster.py", "paper.py", "quick.py"]


def test_every_run_of_a_document_has_its_own_environment(places) -> None:
    runs = [{"run": n, "environment": {"cards": ["NVIDIA H200"], "driver": n}} for n in (1, 2)]
    for number in (1, 2):
        result = made_elsewhere(target="h200x4", size="large", run=number, environment={})
        made, new = import_result(result=result, origin="a.json", document={"runs": runs})
        assert new
        assert made.environment["driver"] == number


def test_an_imported_result_is_marked_and_never_has_a_place(client: Client, places, tmp_path: Path) -> None:
    score(model_run("Slow but ours"), "allreduce", speedup=1.1)
    confirmed()
    path = "/boards/cpu4/allreduce/"
    assert "Imported results" not in client.get(path).content.decode()
    before = board_version()
    run(write(tmp_path / "one.json", made_elsewhere()))
    assert board_version() > before
    for address in ("/boards/cpu4/allreduce.json", "/api/v1/leaderboards/cpu4/problems/allreduce/"):
        document = client.get(address).json()
        assert [(row["place"], row["speedup"]) for row in document["rows"]] == [(1, 1.1)]
        (row,) = document["imported"]
        assert (row["place"], row["imported"], row["note"], row["speedup"]) == (None, True, NOTE, 9.0)
    page = client.get(path).content.decode()
    assert "fast_cuda.py" in page
    assert NOTE in page
    assert page.index("Slow but ours") < page.index("fast_cuda.py")
    for address in ("/boards/cpu4/allreduce.csv", "/boards/cpu4/", "/boards/models.json?target=cpu4",
                    "/boards/cpu4/records.atom"):  # fmt: skip
        assert "fast_cuda" not in client.get(address).content.decode()
    exported = b"".join(client.get("/boards/export/scores.jsonl")).decode().splitlines()
    # By value: a moment of the day may hold "9.0", too.
    assert [row["speedup"] for row in map(json.loads, exported[1:])] == [1.1]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"target": "h100x8"}, "is for the target 'h100x8', which is not known here"),
        ({"target": ""}, "has no target"),
        ({"target": "h100x4", "environment": {"cards": ["NVIDIA H200"]}}, "says h100x4, but was measured on"),
        ({"problem": {"slug": "nothing"}}, "is for the problem 'nothing', which is not known here"),
        ({"problem": "allreduce"}, "has no slug"),
        ({"verdict": "splendid"}, "has the unknown verdict 'splendid'"),
        ({"verdict": None}, "has no verdict"),
        ({"protocol": 3}, "has no protocol"),
        ({"size": None}, "has no size"),
        ({"size": "large"}, "has the size 'large'; cpu4 judges tiny"),
        ({"target": "h200x4"}, "has the size 'tiny'; h200x4 judges default, large"),
    ],
)  # fmt: skip
def test_a_bad_result_gets_its_line_and_the_rest_goes_on(places, tmp_path: Path, fields, why: str) -> None:
    document = {"results": [made_elsewhere(**fields), made_elsewhere(), "no result"]}
    told = run(write(tmp_path / "some.json", document), fails=True)
    assert f"some.json, result 1: refused: {why}" in told
    assert "some.json, result 2: imported: fast_cuda.py, allreduce on cpu4" in told
    assert "some.json, result 3: refused: is not a result of the harness" in told
    assert ImportedResult.objects.count() == 1


def test_bad_files_get_their_line_and_the_rest_goes_on(places, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{not json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    write(tmp_path / "c.json", 7)
    write(tmp_path / "d.json", [made_elsewhere()])
    (tmp_path / "e.json").write_text("[" * 100_000)
    told = run(tmp_path, tmp_path / "missing.json", fails=True)
    assert "a.json: refused: is not JSON" in told
    assert "b.json: refused: is not JSON" in told
    assert "c.json: refused: holds no results of the harness (found: int)" in told
    assert "d.json, result 1: imported" in told
    assert "e.json: refused: is not JSON" in told
    assert "missing.json: refused: cannot be read: No such file" in told
    assert "6 files: 1 imported, 0 known before, 0 left out, 5 refused" in told


@pytest.mark.parametrize("slug", ["h100x4", "h200x4"])
def test_the_target_is_what_the_result_says(client: Client, places, tmp_path: Path, slug: str) -> None:
    cards = {"cards": [f"NVIDIA {slug[:4].upper()}"] * 4}
    run(
        write(
            tmp_path / "r.json",
            {"results": [made_elsewhere(target=slug, size="large")], "environment": cards},
        )
    )
    other = {"h100x4": "h200x4", "h200x4": "h100x4"}[slug]
    shown = {
        target: client.get(f"/boards/{target}/allreduce.json?size=large").json()["imported"]
        for target in (slug, other)
    }
    assert [row["target"] for row in shown[slug]] == [slug]
    assert shown[other] == []


def test_odd_values_do_no_harm(client: Client, places, tmp_path: Path) -> None:
    odd = made_elsewhere(
        timing={"speedup": True, "speedup_low": "x", "solution_ms": -1}, flags=[{"a": 1}], isolation_grade="best",
        file="<script>alert(1)</script>\0" + "y" * 300, environment=[1], roofline=7,
    )  # fmt: skip
    text = json.dumps([odd]).replace("-1", "NaN")
    (tmp_path / "odd.json").write_text(text)
    run(tmp_path / "odd.json")
    row = ImportedResult.objects.get()
    assert (row.speedup, row.solution_ms, row.flags, row.isolation_grade) == (None, None, [{"a": 1}], "none")
    assert "<script>alert" not in client.get("/boards/imported/").content.decode()
    assert client.get("/boards/imported.json").json()["rows"][0]["speedup"] is None
    assert client.get("/boards/imported/?target=abacus").status_code == 400
    assert client.get("/boards/imported/?target=%00").status_code == 400
    assert client.get("/api/v1/leaderboards/abacus/imported/").status_code == 404
