"""What a query parameter cannot mean is refused with 400, by name, on pages and in the API alike."""

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.evaluator import build
from tests.leaderboard.test_models import model_run, refresh, score

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]

API = "/api/v1"

# path -> parameter -> a value that means nothing, and a word of what the refusal must name
ODD: dict[str, dict[str, tuple[str, str]]] = {
    f"{API}/submissions/": {
        "state": ("lost", "queued, building"),
        "verdict": ("good", "contract_error"),
        "mode": ("turbo", "check, quick, score, profile"),
        "problem": ("allreduse", "allreduce"),
        "target": ("tpu", "cpu4"),
        "run": ("mine", "number"),
        "mine": ("perhaps", "true"),
        "page_size": ("many", "1 to 200"),
        "cursor": ("nonsense", "next"),
        "sate": ("done", "state"),
    },
    f"{API}/submissions/{{open}}/": {"wait": ("abc", "seconds")},
    f"{API}/problems/": {
        "level": ("7", "1"),
        "domain": ("cooking", "general"),
        "parallelism": ("sideways", "tensor"),
        "collective": ("gossip", "all_reduce"),
        "bound": ("luck", "nvlink"),
        "track": ("field", "none of"),
        "solved_on": ("tpu", "cpu4"),
        "unsolved_on": ("tpu", "cpu4"),
        "page_size": ("0", "1 to 200"),
        "colective": ("all_reduce", "collective"),
    },
    f"{API}/problems/allreduce/prompt/": {
        "target": ("tpu", "cpu4"),
        "variant": ("two-shot", "one-shot"),
        "backend": ("sycl", "cpp"),
        "dtype": ("fp4", "bf16"),
        "as": ("xml", "json, text"),
    },
    f"{API}/targets/": {"page_size": ("-1", "1 to 200"), "cursor": ("cD1hYmM", "next")},
    f"{API}/runs/": {"page_size": ("201", "1 to 200"), "cursor": ("cD1hYmM=", "next")},
    "/problems/": {
        "level": ("seven", "1"),
        "domain": ("cooking", "general"),
        "parallelism": ("sideways", "tensor"),
        "collective": ("gossip", "all_reduce"),
        "bound": ("luck", "nvlink"),
        "track": ("field", "none of"),
        "solved_on": ("tpu", "cpu4"),
        "unsolved_on": ("tpu", "cpu4"),
        "page": ("last", "whole number"),
    },
    "/submit/": {
        "problem": ("nothing", "allreduce"),
        "target": ("tpu", "cpu4"),
        "run": ("x", "whole number"),
        "from": ("me", "id"),
    },
    "/submissions/": {
        "state": ("lost", "live, correct"),
        "target": ("tpu", "cpu4"),
        "page": ("0", "whole number"),
    },
    "/submissions/{open}/live/": {"n": ("x", "whole number")},
}
CASES = [(path, name, *told) for path, names in ODD.items() for name, told in names.items()]


@pytest.fixture
def world() -> dict[str, Any]:
    factories.ProblemFactory()
    factories.TargetFactory()
    factories.TargetFactory(slug="h100x4", title="cards", cells=["default", "large"])
    run = model_run("a model")
    score(run, "allreduce", speedup=2.0)
    refresh(run)
    return {"open": factories.judged().pk, "model": run.entrant.slug, "run": run}


@pytest.mark.parametrize(("path", "name", "value", "word"), CASES, ids=[f"{p}?{n}" for p, n, *_ in CASES])
def test_nonsense_is_refused_by_name(
    client: Client, world: dict[str, Any], path: str, name: str, value: str, word: str
) -> None:
    client.force_login(factories.UserFactory())
    url = path.format(**world)
    assert client.get(url).status_code == 200
    response = client.get(url, {name: value})
    text = response.content.decode()
    assert response.status_code == 400, text
    assert word in text
    if path.startswith("/api/") or "." in path:
        body = response.json()
        assert response["Content-Type"] == "application/problem+json"
        assert [error["field"] for error in body["errors"]] == [name]
        assert name in body["detail"] or name == "cursor"
    else:
        assert "<h1>" in text
        assert f"{name}" in text


@pytest.mark.parametrize("path", [f"{API}/problems/", "/problems/"])
def test_one_parameter_with_two_values_is_refused(client: Client, world: dict[str, Any], path: str) -> None:
    response = client.get(f"{path}?level=1&level=2")
    assert response.status_code == 400
    assert "once" in response.content.decode()


def test_empty_parameters_are_not_given(client: Client, world: dict[str, Any]) -> None:
    client.force_login(factories.UserFactory())
    for path, names in ODD.items():
        empty = {name: "" for name in names if name not in ("sate", "colective", "cursor", "run")}
        assert client.get(path.format(**world), empty).status_code == 200, path


def test_a_page_beyond_the_last_is_the_last(client: Client, world: dict[str, Any]) -> None:
    assert client.get("/problems/?page=99").context["page"].number == 1


def test_an_unknown_problem_is_404_with_near_names(client: Client) -> None:
    for slug in ("allreduce", "allgather", "ring_attention"):
        build.problem(slug)
    factories.TargetFactory()
    for path in (f"{API}/problems/all_reduce/",):
        body = client.get(path).json()
        assert (body["code"], body["near"][0]) == ("problem.not_found", "allreduce")
        assert "Did you mean allreduce" in body["detail"]
        assert body["detail"].endswith("All of them: /api/v1/problems/.")
    for path in ("/problems/all_reduce/",):
        page = client.get(path)
        assert page.status_code == 404
        assert "Did you mean allreduce? All of them: /problems/." in page.content.decode()
    assert "Targets: cpu4" in client.get(f"{API}/targets/cpu8/").json()["detail"]
