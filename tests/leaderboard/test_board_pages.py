"""What readers choose on the boards' pages: columns, problems; all by query parameters."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.test import Client

from leaderboard import beside, charts, columns, figure_cells, page_cache
from leaderboard.models import Score
from leaderboard.published import published
from leaderboard.twins import twin
from portal.submissions.models import Entrant, ModelRun
from tests import factories
from tests.evaluator import build
from tests.leaderboard.test_models import refresh, score

pytestmark = pytest.mark.django_db


def verified_run(name: str, **fields: Any) -> ModelRun:
    return build.run(build.entrant(name), **({"verified": True, "date": date(2026, 11, 1)} | fields))


def headings(client: Client, query: str = "") -> list[str]:
    page = client.get(f"/boards/models/?target=cpu4{query}").content.decode()
    head = page.partition('class="board"')[2].partition("<thead>")[2].partition("</thead>")[0]
    return [column.label for column in columns.COLUMNS if f">{column.label}" in head]


def test_columns_are_chosen_by_query_parameters(client: Client) -> None:
    build.problem("a")
    run = verified_run("m")
    score(run, "a", speedup=2.0)
    refresh(run)
    usual = [column.label for column in columns.COLUMNS if column.usual]
    assert headings(client) == usual
    assert headings(client, "&col=harness&col=roof_50") == ["Half of roofline", "Harness"]
    page = client.get("/boards/models/?target=cpu4&col=harness").content.decode()
    assert '<form class="filters filters--wide" method="get">' in page  # no script is needed
    assert 'name="col" value="harness" checked' in page
    assert (
        "col=harness" in page.partition('class="board"')[2].partition("<tbody>")[0]
    )  # sorting keeps the choice


def test_the_board_explains_its_columns_and_says_how_much_was_sent(client: Client) -> None:
    for slug in "abc":
        build.problem(slug)
    run = verified_run("m")
    score(run, "a", speedup=2.0)
    score(run, "b", verdict="incorrect", speedup=None)
    refresh(run)
    page = client.get("/boards/models/?target=cpu4").content.decode()
    assert '1<span class="band">of 3; 1 faster</span><span class="band">2 sent</span>' in page
    assert "has nothing left to be judged" in page
    told = page.partition("How to read this")[2].partition("</details>")[0]
    for column in filter(lambda column: column.meaning, columns.COLUMNS):
        assert (html.escape(column.meaning) in told) is column.usual
    part = client.get("/boards/models/?target=cpu4&problems=a").content.decode()
    assert 'of 1; 1 faster</span><span class="band">1 sent</span>' in part


def test_a_board_calls_the_links_of_a_cpu_the_same_everywhere(client: Client) -> None:
    build.problem("a")
    run = verified_run("m")
    score(run, "a", speedup=2.0)
    Score.objects.update(bound="nvlink", provisional=False)
    target = build.target()

    def told() -> set[str]:
        board = client.get("/api/v1/leaderboards/cpu4/problems/a/").json()
        rows = list(csv.DictReader(io.StringIO(client.get("/boards/cpu4/a.csv").content.decode())))
        assert board["rows"]
        assert rows
        return {row["bound"] for row in [*board["rows"], *board["provisional"], *rows]}

    for device, word in (("cpu", "link"), ("cuda", "nvlink")):
        target.spec["device"] = device
        target.save()
        caches["default"].clear()
        assert told() == {word}


# --- a part of the track ---------------------------------------------------------------------------


@pytest.fixture
def two_runs() -> tuple[ModelRun, ModelRun]:
    """One that is good at level 1, one at level 2."""
    build.problem("a", level=1, parallelism=["data"])
    build.problem("b", level=1, parallelism=["tensor"])
    build.problem("c", level=2, domain="attention", parallelism=["tensor", "context"])
    first, second = verified_run("first"), verified_run("second")
    score(first, "a", speedup=3.0)
    score(first, "b", speedup=2.0)
    score(second, "c", speedup=2.0)
    score(second, "a", verdict="timeout")
    for run in (first, second):
        refresh(run)
    return first, second


@pytest.mark.parametrize(
    ("query", "fast", "track"),
    [
        ("", {"first": 2 / 3, "second": 1 / 3}, 3),
        ("&level=1", {"first": 1.0, "second": 0.0}, 2),
        ("&level=2", {"second": 1.0, "first": 0.0}, 1),
        ("&domain=attention", {"second": 1.0, "first": 0.0}, 1),
        ("&parallelism=tensor", {"first": 0.5, "second": 0.5}, 2),
        ("&problems=2-3", {"first": 0.5, "second": 0.5}, 2),
        ("&problems=a,+c", {"first": 0.5, "second": 0.5}, 2),
        ("&level=1&problems=c", {}, 0),
    ],
)
def test_the_board_over_a_part_of_the_track(
    client: Client, two_runs: Any, query: str, fast: dict[str, float], track: int
) -> None:
    rows = client.get(f"/boards/models.json?target=cpu4{query}").json()["rows"]
    if fast:
        assert {row["model"]: row["fast_1_at"]["1"] for row in rows} == pytest.approx(fast)
        assert [row["model"] for row in rows] == sorted(fast, key=lambda name: (-fast[name], name))
    assert all(row["track"] == track for row in rows)
    page = client.get(f"/boards/models/?target=cpu4{query}")
    assert page.status_code == 200
    text = page.content.decode()
    assert ("No problem of the track is of this kind" in text) is (track == 0)
    csv = client.get(f"/boards/models.csv?target=cpu4{query}").content.decode()
    assert len(csv.splitlines()) == 3


def test_a_problem_that_is_not_there_is_refused_by_name(client: Client, two_runs: Any) -> None:
    for path in ("/boards/models/", "/boards/taxonomy/", "/boards/compare/"):
        answer = client.get(f"{path}?target=cpu4&problems=a,<b>")
        assert answer.status_code == 400
        assert "problems: &#x27;&lt;b&gt;&#x27; is none of: a, b, c." in answer.content.decode()


def test_compare_and_taxonomy_over_a_part_of_the_track(client: Client, two_runs: Any) -> None:
    first, second = two_runs
    runs = f"target=cpu4&run={first.pk}&run={second.pk}"
    for query, solved in (
        ("", (2, 1)),
        ("&level=1", (2, 0)),
        ("&level=2", (0, 1)),
        ("&problems=a,c", (1, 1)),
    ):
        context = client.get(f"/boards/compare/?{runs}{query}").context
        assert tuple(row.figures["solved"] for row in context["chosen"]) == solved
        assert tuple(won for _, (won, _) in context["wins"]) == solved
        rows = client.get(f"/boards/taxonomy/?target=cpu4{query}").context["tables"][0].lines
        there = {row.model: sum(cell.solved for cell in cells) for row, cells in rows}
        assert there == dict(zip(("first", "second"), solved, strict=True))
    for path in (f"/boards/compare/?{runs}", "/boards/taxonomy/?target=cpu4"):
        text = client.get(f"{path}&level=1&problems=c").content.decode()
        assert "No problem of the track is of this kind" in text


def test_what_is_outside_of_the_track_counts_nowhere(client: Client, two_runs: Any) -> None:
    first, second = two_runs
    build.problem("extra", spec={"track": "extra"})
    score(second, "extra", speedup=9.0)
    page = client.get(f"/boards/compare/?target=cpu4&run={first.pk}&run={second.pk}")
    assert [won for _, (won, _) in page.context["wins"]] == [2, 1]
    table = client.get("/boards/taxonomy/?target=cpu4").context["tables"][0]
    assert sum(count for _, count in table.classes) == 3


def test_the_whole_track_as_a_list_gives_the_kept_figures(client: Client, two_runs: Any) -> None:
    kept = client.get("/boards/models.json?target=cpu4").json()["rows"]
    listed = client.get("/boards/models.json?target=cpu4&problems=1-3").json()["rows"]
    for row, other in zip(kept, listed, strict=True):
        same = ("place", "model", "pass_at", "fast_1_at", "pass_1_band", "geometric_mean", "categories", "n")
        assert {name: row[name] for name in same} == {name: other[name] for name in same}
        assert row["fast_p"]["value"] == other["fast_p"]["value"]


def test_equal_shares_share_a_place_whatever_the_samples(client: Client) -> None:
    """One of three problems by one sample, and one of three by three samples each: the same figure."""
    for slug in ("a", "b", "c"):
        build.problem(slug)
    single, triple = verified_run("single"), verified_run("triple")
    score(single, "a", speedup=2.0)
    for sample, slug in enumerate(("a", "b", "c")):
        score(triple, slug, speedup=2.0, sample=sample)
    for run in (single, triple):
        refresh(run)
    rows = client.get("/boards/models.json?target=cpu4").json()["rows"]
    assert [row["place"] for row in rows] == [1, 1]


# --- what is not sure ------------------------------------------------------------------------------


def test_a_provisional_best_is_solved_but_not_faster_and_says_so(client: Client) -> None:
    build.problem("a")
    run = verified_run("m")
    row = score(run, "a", speedup=2.0)
    type(row).objects.filter(pk=row.pk).update(provisional=True)
    figures = refresh(run).figures
    assert (figures["solved"], figures["faster"], figures["provisional"]) == (1, 0, 1)
    text = client.get("/boards/models/?target=cpu4").content.decode()
    assert "1 provisional" in text
    assert "count as solved, not yet as faster" in text
    page = client.get(f"/boards/models/{run.entrant.slug}/?target=cpu4").content.decode()
    assert "correct, provisional" in page
    problem = client.get("/boards/cpu4/a/").content.decode()
    assert '<span class="badge badge--info">provisional</span>' in problem
    assert "Nobody stands here yet" not in problem


def test_a_measured_best_stands_before_an_unsteady_one_of_the_same_entrant(client: Client) -> None:
    build.problem("a")
    run = verified_run("m")
    score(run, "a", speedup=3.0, flags=["noisy"], sample=0)
    score(run, "a", speedup=0.8, sample=1)
    assert refresh(run).figures["geometric_mean"]["solved"] == pytest.approx(0.8)
    (row,) = client.get("/boards/cpu4/a.json").json()["rows"]
    assert row["speedup"] == pytest.approx(0.8)


def test_a_community_run_stands_while_it_is_still_running(client: Client) -> None:
    build.problem("a")
    run = verified_run("m", verified=False)
    score(run, "a", speedup=2.0)
    build.submission(run=run, problem=build.problem("a"), sample=7)
    refresh(run)
    text = client.get("/boards/models/?target=cpu4&runs=community").content.decode()
    assert "still running" in text
    assert client.get("/boards/models.json?target=cpu4").json()["rows"] == []


# --- what people wrote -----------------------------------------------------------------------------

HOSTILE = "<script>alert('x')</script>&\"quoted\" \u202e\x1f<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("verified", [True, False])
def test_nothing_that_people_wrote_becomes_markup(client: Client, verified: bool) -> None:
    """Names, makers, prompts and runs, in every line that is made by formatting and in every chart."""
    build.problem("a")
    fields = {"vendor": HOSTILE[:60], "open_weights": True, "reasoning": True}
    runs = [
        build.run(
            build.entrant(f"{number}{HOSTILE}", **fields), verified=verified, date=date(2026, 11, number),
            name=HOSTILE, prompt_variant=HOSTILE[:40], harness="agentic",
        )
        for number in (1, 2)
    ]  # fmt: skip
    for number, run in enumerate(runs):
        row = score(run, "a", speedup=2.0 + number, mechanisms=[HOSTILE], flags=[HOSTILE])
        score(run, "a", speedup=1.5, sample=1)
        if number:
            type(row).objects.filter(pk=row.pk).update(provisional=True)
        refresh(run)
    every = "&".join(f"col={column.key}" for column in columns.COLUMNS)
    kind = "verified" if verified else "community"
    for run in runs:
        Entrant.objects.filter(pk=run.entrant_id).update(slug=f"plain-{run.pk}")
    model = f"plain-{runs[0].pk}"
    compared = "&".join(f"run={run.pk}" for run in runs)
    for path in (
        f"/boards/models/?target=cpu4&runs={kind}&{every}",
        f"/boards/models/?target=cpu4&runs={kind}&level=1&{every}",
        f"/boards/models/{model}/?target=cpu4",
        "/boards/cpu4/a/",
        "/boards/cpu4/",
        f"/boards/compare/?target=cpu4&{compared}",
        "/boards/taxonomy/?target=cpu4",
        f"/embed/models/?target=cpu4&runs={kind}",
        f"/embed/models/{model}/fast-p/?target=cpu4",
        "/embed/cpu4/a/record/",
    ):
        text = client.get(path).content.decode()
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "&amp;lt;script" not in text, f"{path}: escaped twice"
        if verified or "taxonomy" not in path:
            assert "&lt;script&gt;alert(&#x27;x&#x27;)" in text, path


def test_the_cells_that_are_kept_hold_figures_alone(client: Client) -> None:
    build.problem("a")
    run = build.run(build.entrant("Zebra", vendor="Maker"), prompt_variant="prompt", verified=True)
    score(run, "a", speedup=2.0)
    kept = refresh(run).cells
    assert figure_cells.track_of(kept) == 1
    assert set(figure_cells.by_column(kept)) < {column.key for column in columns.COLUMNS}
    assert not [word for word in ("Zebra", "Maker", "prompt") if word in kept]
    type(run.entrant).objects.update(name="Renamed")
    page = client.get("/boards/models/?target=cpu4").content.decode()
    assert ">Renamed</a>" in page
    assert ">Zebra" not in page


# --- charts that other sites may frame -------------------------------------------------------------


def test_only_the_embed_pages_may_be_framed(client: Client, two_runs: Any) -> None:
    first, _ = two_runs
    slug = first.entrant.slug
    framed = [
        "/embed/models/?target=cpu4",
        f"/embed/models/{slug}/fast-p/?target=cpu4",
        f"/embed/models/{slug}/roof-u/?target=cpu4",
        f"/embed/models/{slug}/categories/?target=cpu4",
        "/embed/cpu4/a/record/",
        "/embed/cpu4/a/spread/",
    ]
    for path in framed:
        answer = client.get(path)
        assert answer.status_code == 200, path
        policy = answer["Content-Security-Policy"]
        assert "frame-ancestors *" in policy
        assert "script-src 'self'" in policy
        assert "default-src 'none'" in policy
        assert "X-Frame-Options" not in answer
        assert "Set-Cookie" not in answer
        text = answer.content.decode()
        assert text.count("<figure") == text.count("<figcaption") == text.count("<table>") == 1
        assert "<nav" not in text
        assert "style=" not in text
    for path in ("/boards/models/?target=cpu4", f"/boards/models/{slug}/", "/boards/cpu4/a/", "/"):
        answer = client.get(path)
        assert answer["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


def test_the_numbers_of_an_embedded_chart_are_those_of_the_board(client: Client, two_runs: Any) -> None:
    answer = client.get("/embed/models/?target=cpu4&as=csv")
    head, *lines = csv.reader(io.StringIO(answer.content.decode()))
    assert head == [
        "p: speedup", "first", "first, 95 % low", "first, 95 % high", "second", "second, 95 % low",
        "second, 95 % high",
    ]  # fmt: skip
    at_one = next(line for line in lines if float(line[0]) == 1.0)
    rows = {row["model"]: row for row in client.get("/boards/models.json?target=cpu4").json()["rows"]}
    assert float(at_one[1]) == pytest.approx(rows["first"]["fast_1_at"]["1"])
    assert float(at_one[4]) == pytest.approx(rows["second"]["fast_1_at"]["1"])


@pytest.mark.parametrize(
    "path", ["/embed/models/?target=cpu4", "/embed/models/empty/fast-p/", "/embed/cpu4/a/record/"]
)
def test_no_chart_without_data_but_a_sentence(client: Client, path: str) -> None:
    build.problem("a")
    build.target()
    empty = Entrant.objects.create(kind="model", name="Empty", slug="empty")
    build.submission(run=build.run(empty))
    text = client.get(path).content.decode()
    assert "<figure" not in text
    assert re.search(r"yet, so there is nothing|no curve to draw|on this target yet\.", text)
    assert client.get(path + ("&" if "?" in path else "?") + "as=csv").status_code == 404


@pytest.mark.parametrize(
    "path", ["/embed/cpu4/a/nonsense/", "/embed/models/m/nonsense/", "/embed/nowhere/a/record/"]
)
def test_a_chart_that_is_not_there_is_404(client: Client, path: str) -> None:
    build.problem("a")
    build.target()
    assert client.get(path).status_code == 404


# --- the table twin --------------------------------------------------------------------------------


def test_every_chart_of_a_model_has_its_numbers(client: Client, two_runs: Any) -> None:
    first, _ = two_runs
    again = build.run(first.entrant, verified=True, date=date(2026, 11, 5))
    score(again, "a", speedup=1.5)
    refresh(again)
    text = client.get(f"/boards/models/{first.entrant.slug}/?target=cpu4").content.decode()
    assert text.count("<figure") == text.count("chart-twin") == 5  # fast_p, roof_u, categories, heat, runs
    assert "climb" not in text
    assert "no correct sample named a mechanism" in text


def test_a_twin_holds_what_its_figure_draws() -> None:
    history = [
        SimpleNamespace(at=datetime(2026, 1, d, tzinfo=UTC), speedup=float(d), entrant="<a&b>")
        for d in (1, 2)
    ]
    table = twin(charts.record_history(history))
    assert table.head == ["when", "who", "record"]
    assert table.rows[1] == ["2026-01-02T00:00:00+00:00", "<a&b>", 2.0]
    assert table.shown[1] == ["2026-01-02 00:00", "<a&b>", "2"]
    bars = twin(charts.spread([0.5, 2.0, 2.0]))
    assert sum(row[1] for row in bars.rows) == 3
    heat = twin(charts.heat_map(["p"], 2, {("p", 0): ("faster", 2.0)}))
    assert heat.rows == [["p", "correct, faster, 2.00×", "not sent"]]


# --- published figures beside our own --------------------------------------------------------------


def section(client: Client, path: str) -> str:
    """The section of published and measured figures, without its tags."""
    page = client.get(path).content.decode()
    found = page.partition('class="published-beside"')[2].partition("</section>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())


def test_every_figure_says_who_measured_it(client: Client) -> None:
    slug = "hyena_forward_cp"
    factories.ProblemFactory(slug=slug, score_revision="rev1")
    build.card_target()
    build.card_target("h200x2")
    build.target("h200x1", title="4 ranks on one H200", ranked=False)
    for row in published()["case_studies"]:
        assert list(Path(settings.BASE_DIR, "problems", "catalog").glob(f"[0-9]*_{row['slug']}"))
    measured = score(verified_run("m"), slug, speedup=2.5)
    for path in (f"/problems/{slug}/", f"/boards/cpu4/{slug}/"):
        assert f'/submissions/{measured.submission_id}/"><strong>2.50×' in client.get(path).content.decode()
        text = section(client, path)
        assert "published 3.55× GPT-5.5 4 × H100 small" in text
        assert "0.70×" in text  # the paper, long
        assert "this portal's board 2.50× 2.38× – 2.62× m" in text
        assert "not measured – nobody yet" in text  # the official target
        sample = (
            r"measured by this project 20\d\d-\d\d-\d\d \d.\d\d× \d.\d\d× – \d.\d\d× "
            r"on the card alone \d.\d\d× hyena_forward_packed_cuda.py h200x2 "
        )
        idle = "The device was idle for more than half of the call."
        assert re.search(rf"{sample}default Protocol paper. {idle}", text)
        assert re.search(
            rf"{sample}hyena l=512 Bt 1, C 1024, l 512, F 1024 published size Protocol quick.", text
        )
        assert re.search(
            r"checked by this project \S+ correct, not timed hyena_forward_packed_cuda.py 4 ranks", text
        )
        assert "here" not in text.partition("Protocol")[0].partition("Where from")[2]
    build.problem("a")
    assert section(client, "/boards/cpu4/a/") == ""


def test_a_published_word_without_a_figure_and_a_relatives_figure_say_so(client: Client) -> None:
    for slug in ("allgather", "vocab_parallel_cross_entropy_loss", "allreduce"):
        factories.ProblemFactory(slug=slug)
    build.card_target("h200x2")
    assert "published beats NCCL – 4 × H100 small messages" in section(client, "/problems/allgather/")
    assert "allgather 64 KiB M 32, N 1024 Protocol quick." in section(client, "/problems/allgather/")
    relative = section(client, "/problems/vocab_parallel_cross_entropy_loss/")
    assert (
        "1.28× Gemini 3 Pro 4 × H100 l = 1024 Of NeMo-RL's log-probability, a relative of this problem."
        in relative
    )
    unpublished = section(client, "/problems/allreduce/")
    assert unpublished.startswith("> Measured figures")
    assert "allreduce_two_shot_cuda.py" in unpublished
    page = client.get("/boards/published/").content.decode()
    assert "beats NCCL" in page


def test_the_newest_row_of_a_study_is_shown_where_its_file_is_there(tmp_path: Path, settings: Any) -> None:
    folder, samples = tmp_path / "docs" / "measurements", tmp_path / "problems" / "samples"
    for place in (folder, samples):
        place.mkdir(parents=True)
    (samples / "a_cuda.py").write_text("now")
    listed = "".join(f'[[samples]]\nfile = "{name}.py"\nproblem = "a"\n' for name in ("a_cuda", "gone_cuda"))
    (samples / "samples.toml").write_text(listed)

    def write(name: str, command: str, *rows: dict[str, Any]) -> None:
        (folder / name).write_text(json.dumps({"command": command, "rows": rows}))

    def row(study: str, file: str = "a_cuda.py", **fields: Any) -> dict[str, Any]:
        figures = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1, "flags": ["unranked_protocol"]}
        return (
            {"study": study, "file": file, "size": {"T": 8}, "published": None, "verdict": "correct"}
            | figures
            | fields
        )

    untimed = {key: value for key, value in row("one", verdict="timeout").items() if "speedup" not in key}
    write(
        "h200x2_studies_20260102.json",
        "bench --protocol paper",
        row("one", speedup=3.0),
        row("two", published=3.7),
    )
    write(
        "h200x2_studies_second_20260101.json", "bench", row("one"), row("three"), row("four", "gone_cuda.py")
    )
    write("h200x2_studies_20260103_again.json", "bench", untimed)
    write("h200x2_studies_of_no_day.json", "bench", row("five"))
    settings.BASE_DIR = tmp_path
    beside.own_studies.cache_clear()
    try:
        found = beside.own_studies()["a"]
    finally:
        beside.own_studies.cache_clear()
    told = [(one.study, one.speedup, one.date, one.protocol, one.published_size) for one in found]
    assert told == [
        ("one", 3.0, "2026-01-02", "paper", False),
        ("three", 2.0, "2026-01-01", "quick", False),
        ("two", 2.0, "2026-01-02", "paper", True),
    ]
    assert found[0].target == "h200x2"
    assert found[0].flags == (), "the protocol says it"


def test_our_samples_are_told_from_any_file_of_results(tmp_path: Path, settings: Any) -> None:
    folder, samples = tmp_path / "docs" / "measurements", tmp_path / "problems" / "samples"
    for place in (folder, samples):
        place.mkdir(parents=True)
    (samples / "a_cuda.py").write_text("now")

    def row(protocol: str, speedup: float | None, *flags: str, source: str = "now") -> dict[str, Any]:
        timing = {"speedup": speedup} if speedup else None
        return {
            "problem": {"slug": "a"}, "target": "h200x2", "file": "x/a_cuda.py", "verdict": "correct",
            "protocol": protocol, "timing": timing, "flags": list(flags), "size": "default",
            "source_sha256": sha256(source.encode()).hexdigest(),
        }  # fmt: skip

    def told() -> tuple[float | None, str]:
        beside.own_samples.cache_clear()
        (sample,) = beside.own_samples()["a"]
        return sample.speedup, sample.date

    settings.BASE_DIR = tmp_path
    try:
        (folder / "h_samples_20260101.json").write_text(json.dumps({"results": [row("check", None)]}))
        assert told() == (None, "2026-01-01")
        (folder / "h_samples_paper_20260102.json").write_text(json.dumps([row("paper", 2.0)]))
        (folder / "h_samples_quick_20260103.json").write_text(json.dumps([row("quick", 9.0)]))
        (folder / "h_samples_check_20260103.json").write_text(json.dumps([row("check", None)]))
        assert told() == (2.0, "2026-01-02")
        (folder / "h_samples_paper_20260104.json").write_text(json.dumps([row("paper", 3.0, "noisy")]))
        assert told() == (1.0, "2026-01-04"), "what is noisy is a tie"
        (folder / "h_samples_paper_20260105.json").write_text(
            json.dumps([row("paper", 5.0, source="before")])
        )
        assert told() == (1.0, "2026-01-04"), "another text of the file"
        (folder / "h_samples_second_20260104.json").write_text(json.dumps([row("paper", 4.0)]))
        assert told() == (4.0, "2026-01-04"), "the second of a day is the newer"
        large = {**row("paper", 7.0), "size": "large"}
        (folder / "h_samples_large_20260104.json").write_text(json.dumps([large]))
        beside.own_samples.cache_clear()
        found = {sample.size: sample.speedup for sample in beside.own_samples()["a"]}
        assert found == {"default": 4.0, "large": 7.0}, "one size hides no other"
    finally:
        beside.own_samples.cache_clear()


_ROW = {
    "problem": {"slug": "a"}, "target": "cpu4", "file": "a_cuda.py", "verdict": "correct", "protocol": "paper",
    "timing": {"speedup": 2.0}, "size": "not_judged", "source_sha256": sha256(b"now").hexdigest(),
}  # fmt: skip
ODD_FILES = {
    "torn": ("h_samples_20260101.json", '{"results": ['),
    "empty": ("h_samples_20260101.json", ""),
    "no day of the calendar": ("h_samples_20269999.json", "[]"),
    "no rows": ("h_samples_20260101.json", "{}"),
    "null": ("h_samples_20260101.json", "null"),
    "rows of nothing": ("h_samples_20260101.json", "[7]"),
    "an old row": ("h_samples_20260101.json", json.dumps([{"file": "a_cuda.py", "speedup": 2.0}])),
    "a speedup in words": ("h_samples_20260101.json", json.dumps([{**_ROW, "timing": {"speedup": "two"}}])),
    "studies as a list": ("h_studies_20260101.json", "[]"),
    "a study without its size": (
        "h_studies_20260101.json",
        json.dumps({"command": "x", "rows": [{"file": "a_cuda.py", "speedup": 2.0}]}),
    ),
}


@pytest.mark.parametrize("way", ODD_FILES)
def test_a_stored_file_that_is_odd_breaks_no_page_and_hides_no_other(
    client: Client, tmp_path: Path, settings: Any, way: str
) -> None:
    folder, samples = tmp_path / "docs" / "measurements", tmp_path / "problems" / "samples"
    for place in (folder, samples):
        place.mkdir(parents=True)
    (samples / "a_cuda.py").write_text("now")
    (samples / "samples.toml").write_text('[[samples]]\nfile = "a_cuda.py"\nproblem = "a"\n')
    name, text = ODD_FILES[way]
    (folder / name).write_text(text)
    (folder / "h_samples_good_20260102.json").write_text(json.dumps([_ROW]))
    factories.ProblemFactory(slug="a")
    build.target()
    caches["near"].clear()
    caches["pages"].clear()
    settings.BASE_DIR = tmp_path
    kept = (beside.own_samples, beside.own_studies, page_cache.code_version)
    try:
        for one in kept:
            one.cache_clear()
        page = client.get("/problems/a/").content.decode()
    finally:
        for one in kept:
            one.cache_clear()
    assert "measured by this project" in page
    assert "not_judged" in page
    assert "?size=not_judged" not in page, "there is no board of that size"


def test_the_api_takes_the_same_part_of_the_track(client: Client, two_runs: Any) -> None:
    path = "/api/v1/leaderboards/cpu4/models/"
    rows = client.get(f"{path}?level=2").json()["rows"]
    assert {row["model"]: row["fast_1_at"]["1"] for row in rows} == {"second": 1.0, "first": 0.0}
    wrong = client.get(f"{path}?problems=nonsense")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "problems.unknown")
