"""The model board, model pages and comparisons: figures, freshness, filters."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from datetime import date
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluator.models import Attempt, Host
from leaderboard import bulk, charts, exports, model_board, model_page, review, services, summaries
from leaderboard.management.commands import seed_board
from leaderboard.model_board import Filters
from leaderboard.model_rows import ModelRow
from leaderboard.models import RunSummary, Score
from leaderboard.synthetic import Seeder
from portal.submissions.models import Entrant, ModelRun, Submission
from problems.models import Problem
from tests.evaluator import build

pytestmark = pytest.mark.django_db


def score(
    run: ModelRun, slug: str, *, speedup: float | None = None, verdict: str = "", **fields: Any
) -> Score:
    """A judged sample, written straight to the tables."""
    verdict = verdict or ("correct" if speedup else "incorrect")
    target = build.target()
    sent = build.submission(
        run=run, problem=build.problem(slug), state="done", verdict=verdict,
        sample=fields.pop("sample", 0), step=fields.pop("step", 0), mode=fields.pop("mode", "score"),
    )  # fmt: skip
    now = timezone.now()
    host, _ = Host.objects.get_or_create(
        name="h", defaults={"target": target, "registered_at": now, "last_seen": now}
    )
    attempt = Attempt.objects.create(
        submission=sent, host=host, number=1, leased_at=now, heartbeat_at=now, lease_expires_at=now,
        finished_at=now, exit_reason="scored", result=build.result(verdict, speedup=speedup or 1.0, **fields),
    )  # fmt: skip
    return services.record_score(attempt=attempt)[0]


def model_run(name: str, **fields: Any) -> ModelRun:
    of = fields.pop("entrant", None) or build.entrant(name)
    return build.run(of, **({"verified": True, "date": date(2026, 11, 1)} | fields))


def refresh(run: ModelRun) -> RunSummary:
    return summaries.refresh(run=run, target=build.target(), size="tiny")


def rows(**filters: Any) -> list[ModelRow]:
    return model_board.model_board(target=build.target(), size="tiny", filters=Filters(**filters))


@pytest.fixture
def four_problems() -> list[str]:
    slugs = ["a", "b", "c", "d"]
    for slug in slugs:
        build.problem(slug)
    return slugs


# --- figures ---------------------------------------------------------------------------------------


def test_figures_against_a_hand_made_table(four_problems) -> None:
    run = model_run("m")
    score(run, "a", speedup=2.0, sample=0)
    score(run, "a", speedup=0.5, sample=1)
    score(run, "b", speedup=1.5, sample=0)
    score(run, "b", sample=1, verdict="build_error")
    score(run, "c", sample=0, verdict="timeout")
    figures = refresh(run).figures
    assert (figures["n"], figures["track"], figures["judged"]) == (2, 4, 5)
    assert figures["pass_at"]["1"] == pytest.approx((1 + 0.5) / 4)
    assert figures["fast_1_at"]["1"] == pytest.approx((0.5 + 0.5) / 4)
    assert (figures["solved"], figures["faster"]) == (2, 2)
    assert figures["geometric_mean"]["solved"] == pytest.approx((2.0 * 1.5) ** 0.5)
    assert figures["geometric_mean"]["whole"] == pytest.approx((2.0 * 1.5) ** 0.25)
    assert figures["categories"] | {} == {
        "faster": 2, "slower": 1, "incorrect": 0, "contract": 0, "build": 1, "runtime": 0, "timeout": 1,
        "memory": 0, "rejected": 0, "missing": 3,
    }  # fmt: skip
    curve = figures["fast_p"]
    assert curve["at"][0] == 0.0
    assert curve["value"][0] == figures["pass_at"]["1"]
    assert curve["value"][curve["at"].index(1.0)] == figures["fast_1_at"]["1"]
    assert all(a >= b for a, b in itertools.pairwise(curve["value"]))
    assert all(lo <= v <= hi for lo, v, hi in zip(curve["low"], curve["value"], curve["high"], strict=True))


def test_a_tie_with_the_reference_is_never_faster_whatever_its_sign(four_problems) -> None:
    """The reference sent as it is, or anything else within the noise floor, takes no share of fast_1."""
    run = model_run("m")
    for slug, speedup, floor in (("a", 1.03, 0.1), ("b", 1.03, 0.01), ("c", 0.97, 0.1)):
        timing = {"speedup": speedup, "speedup_low": 0.96, "speedup_high": 1.04, "noise_floor": floor}
        score(run, slug, speedup=speedup, timing=timing)
    figures = refresh(run).figures
    assert (figures["solved"], figures["faster"]) == (3, 1)
    assert figures["fast_1_at"]["1"] == pytest.approx(1 / 4)
    assert (figures["categories"]["faster"], figures["categories"]["slower"]) == (1, 2)
    assert figures["geometric_mean"]["solved"] == pytest.approx((1.03 * 0.97) ** (1 / 3))
    tied = next(row for row in summaries.entries(run_id=run.pk, target=build.target(), size="tiny"))
    assert (tied.problem, tied.speedup, tied.low) == ("a", 1.0, 0.96)


def test_a_correct_sample_that_may_not_rank_is_no_success(four_problems) -> None:
    run = model_run("m")
    score(run, "a", speedup=3.0, timing={"speedup": None})
    score(run, "b", speedup=3.0, input_set="upstream")
    score(run, "c", speedup=3.0, protocol="quick", mode="quick")
    assert refresh(run).figures["solved"] == 0


def test_a_hidden_sample_still_counts_as_tried(four_problems) -> None:
    run = model_run("m")
    score(run, "a", speedup=3.0, sample=0)
    hidden = score(run, "a", verdict="incorrect", sample=1)
    Submission.objects.filter(pk=hidden.submission_id).update(results_public=False)
    assert refresh(run).figures["pass_at"]["1"] == pytest.approx(0.5 / 4)


@pytest.mark.parametrize(
    "end", [{"state": "cancelled"}, {"state": "done", "verdict": "infra_error"}, {"mode": "check"}]
)
def test_a_sample_that_got_no_verdict_counts_for_nothing(four_problems, end) -> None:
    run = model_run("m")
    score(run, "a", speedup=3.0)
    sent = build.submission(run=run, problem=build.problem("a"), sample=1)
    assert summaries.ensure(RunSummary.objects.all()).count() == 0
    assert refresh(run).figures["pass_at"]["1"] == pytest.approx(0.5 / 4)
    Submission.objects.filter(pk=sent.pk).update(**end)
    assert summaries.ensure(RunSummary.objects.all()).get().figures["pass_at"] == {"1": pytest.approx(0.25)}


@pytest.mark.parametrize("how", ["hidden", "no score"])
@pytest.mark.parametrize("verified", [True, False])
def test_a_run_without_a_public_result_for_boards_is_named_nowhere(
    client, four_problems, how, verified
) -> None:
    fields: dict[str, Any] = {"mode": "quick", "protocol": "quick"} if how == "no score" else {}
    shown, run = model_run("shown", verified=verified), model_run("Hush 9", verified=verified)
    score(shown, "a", speedup=1.5)
    sent = score(run, "a", speedup=3.0, **fields)
    if how == "hidden":
        Submission.objects.filter(pk=sent.submission_id).update(results_public=False)
    refresh(shown), refresh(run)
    assert [row.model for row in rows(verified=verified)] == ["shown"]
    assert [row["entrant"] for row in exports.run_rows()] == ["shown"]
    compare = client.get(f"/boards/compare/?run={shown.pk}&run={run.pk}")
    assert compare.status_code == (400 if how == "hidden" else 200)
    assert "Hush 9" not in compare.content.decode() or how == "no score"


def test_the_page_of_a_model_with_private_submissions_is_only_its_owners(client, four_problems) -> None:
    owner, slug = build.user(), "hush-9"
    run = model_run("Hush 9", entrant=build.entrant("Hush 9", owner=owner))
    Entrant.objects.filter(pk=run.entrant_id).update(slug=slug)
    sent = score(run, "a", speedup=3.0)
    Submission.objects.filter(pk=sent.submission_id).update(results_public=False)
    refresh(run)
    pages = [f"/boards/models/{slug}{rest}" for rest in ("/", ".json", "/badge.svg", "/badge.json")]
    pages.append(f"/embed/models/{slug}/fast-p/")
    assert [client.get(page).status_code for page in pages] == [404] * 5
    client.force_login(owner)
    assert [client.get(page).status_code for page in pages] == [200] * 2 + [404] * 3  # what other sites show
    client.logout()
    Submission.objects.filter(pk=sent.submission_id).update(results_public=True)
    assert [client.get(page).status_code for page in pages] == [200] * 5


def test_agentic_runs_count_the_last_step_and_show_the_climb(four_problems) -> None:
    run = model_run("agent", harness="agentic")
    score(run, "a", speedup=3.0, step=0)
    score(run, "a", verdict="build_error", step=1)
    score(run, "b", verdict="incorrect", step=0)
    score(run, "b", speedup=0.9, step=2)
    figures = refresh(run).figures
    assert figures["pass_at"]["1"] == pytest.approx(0.25)
    assert figures["climb"] == [[0, 0.25, 0.25], [1, 0.25, 0.25], [2, 0.5, 0.25]]


@pytest.mark.parametrize("how", ["stopped", "withdrawn", "hidden", "failed at an earlier size"])
def test_no_earlier_step_takes_the_place_of_a_last_one_that_is_gone(four_problems, how: str) -> None:
    run = model_run("agent", harness="agentic")
    score(run, "a", speedup=3.0, step=0)
    score(run, "b", speedup=3.0, step=0)
    fresh = refresh(run).figures
    assert (fresh["solved"], fresh["faster"]) == (2, 2)
    if how == "stopped":
        step = build.submission(run=run, problem=build.problem("a"), sample=0, step=1, state="running")
        assert summaries.ensure(RunSummary.objects.all()).get().figures["solved"] == 2, "not judged yet"
        Submission.objects.filter(pk=step.pk).update(state="cancelled", stage="timing")
    elif how == "failed at an earlier size":
        score(run, "a", verdict="timeout", step=1, size="small")
    else:
        last = score(run, "a", speedup=0.2, step=1).submission
        change = (
            {"results_public": False}
            if how == "hidden"
            else {"removed": "withdrawn", "removed_at": last.created_at}
        )
        Submission.objects.filter(pk=last.pk).update(**change)
    stored = summaries.ensure(RunSummary.objects.all()).get(size="tiny")
    assert (stored.figures["solved"], stored.figures["faster"], stored.figures["judged"]) == (1, 1, 1)
    assert stored.figures["pass_at"]["1"] == pytest.approx(0.25)
    assert set(stored.detail["outcomes"]) == {"b"}
    assert stored.figures["climb"] == [] or stored.figures["climb"][0] == [0, 0.5, 0.5]


@pytest.mark.parametrize("end", [{"state": "cancelled"}, {"state": "done", "verdict": "infra_error"}])
def test_a_step_that_was_given_back_leaves_the_one_before_as_the_last(four_problems, end) -> None:
    run = model_run("agent", harness="agentic")
    score(run, "a", speedup=3.0, step=0)
    build.submission(run=run, problem=build.problem("a"), sample=0, step=1, **end)
    assert refresh(run).figures["solved"] == 1


def test_the_last_steps_cost_no_query_more_with_more_steps(four_problems, django_assert_num_queries) -> None:
    run, target = model_run("agent", harness="agentic"), build.target()
    for step in range(4):
        score(run, "a", speedup=2.0, step=step)
        with django_assert_num_queries(2):
            summaries.entries(run_id=run.pk, target=target, size="tiny")


def test_scoring_refreshes_the_summary(django_capture_on_commit_callbacks, four_problems) -> None:
    from evaluator import services as queue

    run = model_run("m")
    build.submission(run=run, problem=build.problem("a"))
    lease = queue.lease(host=queue.register_host(name="h", target="cpu4"))
    assert lease is not None
    with django_capture_on_commit_callbacks(execute=True):
        queue.complete(token=lease.token, result=build.result())
    assert RunSummary.objects.get(run=run).figures["solved"] == 1


# --- freshness: nothing that left may still be counted ------------------------------------------------


@pytest.mark.parametrize("how", ["disqualified", "hidden", "stale", "problem retired"])
def test_stored_figures_are_never_shown_when_the_rows_changed(client, four_problems, how: str) -> None:
    run = model_run("Zebra")
    left = score(run, "a", speedup=2.0)
    score(run, "b", speedup=2.0)
    refresh(run)
    assert rows()[0].figures["solved"] == 2
    if how == "disqualified":
        review.disqualify(submission=left.submission, by=build.staff(), reason="copied")
    elif how == "hidden":
        Submission.objects.filter(pk=left.submission_id).update(results_public=False)
    elif how == "stale":
        Problem.objects.filter(slug="a").update(score_revision="rev2")
    else:
        Problem.objects.filter(slug="a").update(active=False)
    stored = RunSummary.objects.get().figures["solved"]
    shown = client.get("/boards/models.json?target=cpu4").json()["rows"][0]
    assert (stored, shown["solved"]) == (2, 1)
    assert shown["track"] == (3 if how == "problem retired" else 4)
    page = client.get(f"/boards/models/{run.entrant.slug}/?target=cpu4").content.decode()
    assert f"of {shown['track']} problems, 1 sent; 1 faster" in page


# --- which runs stand ----------------------------------------------------------------------------------


def test_the_latest_complete_verified_run_stands(four_problems) -> None:
    entrant = build.entrant("m")
    old = model_run("", entrant=entrant, date=date(2026, 1, 1))
    new = model_run("", entrant=entrant, date=date(2026, 6, 1))
    other_prompt = model_run("", entrant=entrant, date=date(2026, 2, 1), prompt_variant="cuda")
    community = model_run("", date=date(2026, 7, 1), verified=False)
    person = model_run("", entrant=build.entrant("p", kind="person"))
    for run in (old, new, other_prompt, community, person):
        score(run, "a", speedup=2.0)
        refresh(run)
    assert {r.run_id for r in rows()} == {new.pk, other_prompt.pk}
    assert {r.run_id for r in rows(verified=False)} == {community.pk}
    assert {r.run_id for r in rows(as_of=date(2026, 3, 1))} == {old.pk, other_prompt.pk}
    build.submission(run=new, problem=build.problem("b"), state="running")
    assert {r.run_id for r in rows()} == {old.pk, other_prompt.pk}, "an unfinished run does not stand yet"


def test_filters_and_sorting(four_problems) -> None:
    fast = model_run("fast", entrant=build.entrant("fast", open_weights=True, reasoning=False))
    right = model_run("right", entrant=build.entrant("right", open_weights=False, reasoning=True))
    score(fast, "a", speedup=5.0)
    for slug in ("a", "b", "c"):
        score(right, slug, speedup=0.8)
    for run in (fast, right):
        refresh(run)
    assert [r.model for r in rows()] == ["fast", "right"]
    assert [r.model for r in rows(sort="pass_1")] == ["right", "fast"]
    assert [r.model for r in rows(sort="name")] == ["fast", "right"]
    assert [(r.model, r.place) for r in rows(sort="solved")] == [("right", 2), ("fast", 1)]
    assert [r.model for r in rows(weights="yes")] == ["fast"]
    assert [r.model for r in rows(reasoning="yes")] == ["right"]
    assert rows(harness="agentic") == []


# --- surfaces --------------------------------------------------------------------------------------------


def test_an_independent_reader_of_the_json_finds_the_page_and_csv_figures(client, four_problems) -> None:
    for name, speedups in (("one", (2.0, 3.0)), ("two", (0.5, None))):
        run = model_run(name)
        for slug, speedup in zip(("a", "b"), speedups, strict=True):
            score(run, slug, speedup=speedup)
        refresh(run)
    document = client.get("/boards/models.json?target=cpu4").json()
    lines = list(csv.DictReader(io.StringIO(client.get("/boards/models.csv?target=cpu4").content.decode())))
    page = client.get("/boards/models/?target=cpu4").content.decode()
    for row, line in zip(document["rows"], lines, strict=True):
        assert float(line["fast_1"]) == row["fast_1_at"]["1"]
        assert f"{100 * row['fast_1_at']['1']:.1f} %" in page
        at = row["fast_p"]["at"].index(1.0)
        assert row["fast_p"]["value"][at] == row["fast_1_at"]["1"]
    figure = json.loads(
        re.search(r'<script id="chart-fast-p" type="application/json">(.*?)</script>', page).group(1)
    )
    assert [trace["name"] for trace in figure["data"]] == ["one", "two"]


def test_pages_stand_without_any_run(client) -> None:
    build.target()
    for path in (
        "/boards/models/",
        "/boards/models/?runs=community",
        "/boards/compare/",
        "/boards/published/",
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert b"plotly" not in answer.content, f"{path}: no chart without data"
    nobody = build.entrant("nobody")
    build.submission(run=build.run(nobody))
    assert "judged under the full protocol" in client.get(f"/boards/models/{nobody.slug}/").content.decode()


def test_odd_requests(client, four_problems) -> None:
    run = model_run("m")
    score(run, "a", speedup=2.0)
    refresh(run)
    assert client.get("/boards/models/nobody/").status_code == 404
    assert client.get("/boards/").url == "/boards/models/"


def test_duels_name_the_winner_and_whether_it_is_clear(four_problems) -> None:
    one, two = model_run("one"), model_run("two")
    score(one, "a", speedup=2.0)
    score(two, "a", speedup=1.95)
    score(one, "b", speedup=1.0)
    score(two, "b", speedup=4.0)
    score(one, "c", speedup=1.2)
    for run in (one, two):
        refresh(run)
    found = model_page.duels(model_page.outcomes_of([one.pk, two.pk], target=build.target(), size="tiny"))
    assert [(d.problem, d.winner, d.clear) for d in found] == [
        ("a", 0, False),
        ("b", 1, True),
        ("c", 0, True),
        ("d", None, False),
    ]
    assert found[1].ratio == pytest.approx(4.0)
    assert model_page.wins(found, 2) == [(2, 1), (1, 1)]


def test_compare_shows_the_chosen_runs(client, four_problems) -> None:
    runs = [model_run(f"m{number}") for number in range(6)]
    for run in runs:
        score(run, "a", speedup=2.0)
        refresh(run)
    query = "&".join(f"run={run.pk}" for run in runs)
    page = client.get(f"/boards/compare/?target=cpu4&{query}").content.decode()
    assert page.count("Who wins where") == 1
    assert page.count(" checked") == 6


# --- charts ------------------------------------------------------------------------------------------------


def test_an_entrant_has_one_colour_everywhere_and_names_stay_text(four_problems) -> None:
    run = model_run("<b>bold</b>")
    score(run, "a", speedup=2.0)
    refresh(run)
    (row,) = rows()
    figures = [charts.fast_p([row], band=True), charts.roof_u([row]), charts.fast_p([row])]
    colours = {trace["line"]["color"] for figure in figures for trace in figure["data"] if "name" in trace}
    assert colours == {charts.colour(row.entrant_id)}
    assert "<b>bold" not in figures[0]["data"][-1]["hovertemplate"].replace("<b>&lt;b&gt;", "")


def test_heat_map_gives_each_outcome_its_band() -> None:
    figure = charts.heat_map(["a", "b"], 2, {("a", 0): ("faster", 2.0), ("b", 1): ("timeout", None)})
    (data,) = figure["data"]
    assert data["text"][0][0] == "correct, faster, 2.00×"
    assert data["text"][0][1] == "not sent"
    assert data["z"][0][0] != data["z"][1][1]
    assert all(0 <= z <= data["zmax"] for line in data["z"] for z in line)


# --- invented rows ---------------------------------------------------------------------------------------


def test_seed_board_refuses_a_database_that_is_not_for_it(monkeypatch) -> None:
    elsewhere = SimpleNamespace(
        DATABASES={"default": {"NAME": "/srv/portal/db.sqlite3"}}, SYNTHETIC_ROWS=True
    )
    monkeypatch.setattr(seed_board, "settings", elsewhere)
    with pytest.raises(CommandError, match="seed"):
        call_command("seed_board", models=1)
    assert not Score.objects.exists()


def test_production_makes_no_invented_rows(monkeypatch) -> None:
    given = {"SECRET_KEY": "x" * 50, "ALLOWED_HOSTS": ["a.b"], "CELERY_BROKER_URL": "redis://a"}
    for name, value in given.items():
        monkeypatch.setattr(f"portal.settings.base.{name}", value)
    production = import_module("portal.settings.prod")
    monkeypatch.setattr(seed_board, "settings", SimpleNamespace(
        DATABASES={"default": {"NAME": "pkb_seed"}}, SYNTHETIC_ROWS=production.SYNTHETIC_ROWS
    ))  # fmt: skip
    with pytest.raises(CommandError, match="production"):
        call_command("seed_board", models=1)
    assert not Score.objects.exists()


def test_invented_rows_are_whole_labelled_and_counted(four_problems) -> None:
    target = build.target()
    with bulk.unchecked(Submission, Attempt, Score):
        seeder = Seeder(1)
        run = seeder.run(seeder.model(1), 1)
        assert seeder.fill(run, target, 5) == 20
        seeder.write()
    seeder.finish()
    assert Submission.objects.filter(code__endswith=".synthetic", run=run).count() == 20
    assert run.entrant.name.startswith("Synthetic")
    (row,) = rows()
    assert row.figures["judged"] == 20
    assert row.figures["solved"] == len(set(Score.objects.filter(ranked=True).values_list("problem_id")))
    build.submission(run=run)  # the counters of ids go on after the last row
