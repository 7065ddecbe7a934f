"""Every query parameter of every public board: what cannot be meant is 400 and is named, nothing falls back."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.test import Client

from leaderboard import embed_urls, urls
from portal import api_urls
from portal.submissions.models import ModelRun
from tests.evaluator import build
from tests.leaderboard.test_models import model_run, refresh, score

pytestmark = pytest.mark.django_db

# parameter -> (kind of its values, a value that is taken, a word that a refusal names)
Parameters = dict[str, tuple[str, str, str]]
PAGE: Parameters = {"page": ("number", "1", "whole number")}
TARGET: Parameters = {"target": ("choice", "cpu4", "cpu4")}
SIZE: Parameters = {"size": ("choice", "tiny", "tiny")}
RUNS: Parameters = {"runs": ("choice", "verified", "verified, community")}
PART: Parameters = {
    "level": ("choice", "1", "1"),
    "domain": ("choice", "primitives", "primitives"),
    "parallelism": ("choice", "tensor", "tensor"),
    "problems": ("list", "a", "a"),
}
OF_MODELS: Parameters = {
    **SIZE, **RUNS, **PART, **PAGE,
    "harness": ("choice", "agentic", "single-shot"),
    "weights": ("choice", "yes", "yes, no"),
    "reasoning": ("choice", "no", "yes, no"),
    "as_of": ("day", "2026-11-29", "YYYY-MM-DD"),
    "sort": ("choice", "name", "fast_1"),
}  # fmt: skip
COL: Parameters = {"col": ("many", "harness", "fast_1")}
RUN: Parameters = {"run": ("choice", "RUN_SLUG", "RUN_SLUG")}
OF_PROBLEM: Parameters = {
    **SIZE, **PAGE, "policy": ("choice", "latest", "best, latest"), "kind": ("choice", "team", "model, team"),
}  # fmt: skip
AS: Parameters = {"as": ("choice", "csv", "csv")}

ROUTES: dict[str, tuple[str, Parameters]] = {
    "leaderboard:models": ("/boards/models/", TARGET | OF_MODELS | COL),
    "leaderboard:models_csv": ("/boards/models.csv", TARGET | OF_MODELS | COL),
    "leaderboard:models_json": ("/boards/models.json", TARGET | OF_MODELS | COL),
    "leaderboard:model": ("/boards/models/MODEL/", TARGET | SIZE | RUN | PAGE),
    "leaderboard:model_json": ("/boards/models/MODEL.json", TARGET | SIZE | RUN),
    "leaderboard:badge": ("/boards/models/MODEL/badge.svg", TARGET),
    "leaderboard:badge_json": ("/boards/models/MODEL/badge.json", TARGET),
    "leaderboard:export": ("/boards/export/", PAGE),
    "leaderboard:export_json": ("/boards/export/versions.json", PAGE),
    "leaderboard:imported": ("/boards/imported/", PAGE | {"target": ("choice", "", "none yet")}),
    "leaderboard:imported_json": ("/boards/imported.json", PAGE | {"target": ("choice", "", "none yet")}),
    "leaderboard:compare": ("/boards/compare/", TARGET | SIZE | RUNS | PART | {"run": ("many", "RUN_ID", "run_id")}),
    "leaderboard:taxonomy": ("/boards/taxonomy/", TARGET | SIZE | PART),
    "leaderboard:target": ("/boards/cpu4/", SIZE),
    "leaderboard:problem": ("/boards/cpu4/a/", OF_PROBLEM),
    "leaderboard:problem_csv": ("/boards/cpu4/a.csv", OF_PROBLEM),
    "leaderboard:problem_json": ("/boards/cpu4/a.json", OF_PROBLEM),
    "embed:models": ("/embed/models/", TARGET | OF_MODELS | COL | AS),
    "embed:model": ("/embed/models/MODEL/fast-p/", TARGET | SIZE | RUN | AS),
    "embed:problem": ("/embed/cpu4/a/record/", OF_PROBLEM | AS),
    "api:model_board": ("/api/v1/leaderboards/cpu4/models/", OF_MODELS),
    "api:problem_board": ("/api/v1/leaderboards/cpu4/problems/a/", OF_PROBLEM),
    "api:imported_results": ("/api/v1/leaderboards/cpu4/imported/", PAGE),
}  # fmt: skip

WITHOUT_PARAMETERS = {
    "index", "problems", "published", "records", "scores_jsonl", "data_card", "export_build", "export_file",
}  # fmt: skip

ALL = {name for _, parameters in ROUTES.values() for name in parameters}

ODD = {
    "choice": ("nonsense", "TINY ", "x" * 5000, "é\u2028", "-1"),
    "many": ("nonsense", "x" * 5000, "0", "-1", "9" * 30),
    "list": ("nonsense", "a,nonsense", "a 7-9", "x" * 5000, "-1"),
    "number": ("nonsense", "0", "-1", "1.5", "1e3", "9" * 400, "x" * 5000),
    "day": ("never", "2026-13-01", "20261129", "2026-11-29T00:00", "-1", "x" * 5000),
}


@pytest.fixture
def run() -> ModelRun:
    build.problem("a", parallelism=["tensor"])
    made = model_run("m", date=date(2026, 11, 1))
    score(made, "a", speedup=2.0)
    refresh(made)
    return made


def filled(text: str, run: ModelRun) -> str:
    found = text.replace("MODEL", run.entrant.slug)
    return found.replace("RUN_SLUG", run.slug).replace("RUN_ID", str(run.pk))


def refused(client: Client, path: str, query: Any) -> Any:
    answer = client.get(path, query) if isinstance(query, dict) else client.get(f"{path}?{query}")
    assert answer.status_code == 400, (path, query)
    return answer


def field_of(path: str, answer: Any) -> str:
    """The parameter that a refusal names: in the problem's errors, or in the text of the page."""
    if path.startswith("/api/") or "." in path:
        assert answer["Content-Type"] == "application/problem+json"
        (error,) = answer.json()["errors"]
        return str(error["field"])
    advice = answer.content.decode().partition("<h1>")[2].partition("</main>")[0]
    return next((name for name in ALL if f"`{name}`" in advice or f"{name}: " in advice), advice)


def test_the_table_names_every_route_of_the_boards() -> None:
    named = {
        f"leaderboard:{route.name}" for route in urls.urlpatterns if route.name not in WITHOUT_PARAMETERS
    }
    named |= {f"embed:{route.name}" for route in embed_urls.urlpatterns}
    named |= {f"api:{route.name}" for route in api_urls.v1 if "leaderboards/" in str(route.pattern)}
    assert named == set(ROUTES)


@pytest.mark.parametrize("route", ROUTES)
def test_odd_values_are_refused_by_name(client: Client, run: ModelRun, route: str) -> None:
    template, parameters = ROUTES[route]
    path = filled(template, run)
    for name, (kind, _, word) in parameters.items():
        for value in ODD[kind]:
            answer = refused(client, path, {name: value})
            assert field_of(path, answer) == name, value
            told = answer.json()["detail"] if "json" in answer["Content-Type"] else answer.content.decode()
            assert filled(word, run) in told or len(value) > 1000, (name, value, told)
        refused(client, path, f"{name}=%00")


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_empty_is_not_given_and_what_is_known_is_taken(
    client: Client, run: ModelRun, route: str
) -> None:
    template, parameters = ROUTES[route]
    path = filled(template, run)
    assert client.get(path, dict.fromkeys(parameters, "")).status_code == 200
    for name, (_, value, _) in parameters.items():
        assert client.get(path, {name: filled(value, run)}).status_code == 200, name
        assert client.get(path, {name: [filled(value, run)] * 2}).status_code == 200, name


@pytest.mark.parametrize("route", ROUTES)
def test_two_values_for_one_are_refused(client: Client, run: ModelRun, route: str) -> None:
    template, parameters = ROUTES[route]
    path = filled(template, run)
    for name, (kind, value, _) in parameters.items():
        if kind != "many":
            answer = refused(client, path, {name: [filled(value, run), "other"]})
            assert field_of(path, answer) == name
            assert "once" in answer.content.decode()


@pytest.mark.parametrize("route", ROUTES)
def test_a_parameter_that_is_not_there_is_refused(client: Client, run: ModelRun, route: str) -> None:
    template, parameters = ROUTES[route]
    path = filled(template, run)
    answer = refused(client, path, {"siez": "tiny"})
    told = answer.content.decode()
    assert "`siez`" in told
    assert next(iter(parameters)) in told, "it names what there is"
    assert client.get(path, {"utm_source": "x", "fbclid": "y"}).status_code == 200, "added by other sites"
    if route.startswith("api:"):
        assert answer.json()["errors"][0]["field"] == "siez"
        assert client.get(path, {"format": "json"}).status_code == 200


@pytest.mark.parametrize("path", ["/boards/", "/boards/published/", "/boards/export/scores.jsonl"])
def test_where_nothing_can_be_asked_for_every_parameter_is_refused(
    client: Client, run: ModelRun, path: str
) -> None:
    assert "nothing can be asked for" in refused(client, path, {"size": "tiny"}).content.decode()


@pytest.mark.parametrize("path", ["/boards/models/", "/boards/cpu4/a/", "/boards/models/MODEL/"])
def test_a_page_beyond_the_last_is_the_last(client: Client, run: ModelRun, path: str) -> None:
    assert client.get(filled(path, run), {"page": "999"}).context["page"].number == 1


def test_more_runs_than_are_compared_are_refused(client: Client, run: ModelRun) -> None:
    many = [run, *(model_run(f"m{number}") for number in range(6))]
    answer = refused(client, "/boards/compare/", {"run": [one.pk for one in many]})
    assert "at most 6" in answer.content.decode()


def test_a_run_without_anything_there_is_named_and_left_out(client: Client, run: ModelRun) -> None:
    elsewhere = model_run("Elsewhere")
    build.submission(run=elsewhere)
    text = client.get("/boards/compare/", {"run": [run.pk, elsewhere.pk], "target": "cpu4"}).content.decode()
    assert "Elsewhere" in text
    assert "is left out" in text


def test_a_target_without_sizes_has_no_board(client: Client, run: ModelRun) -> None:
    build.target("empty", cells=[])
    assert client.get("/boards/empty/").status_code == 404
    assert client.get("/boards/models/", {"target": "empty"}).status_code == 400
