"""Browsing the catalogue: solved or not on a target, the extra track, the map of the taxonomy."""

import re
from typing import Any

import pytest
from django.test import Client

from leaderboard.models import Score
from portal.submissions.standing import withdraw
from tests import factories
from tests.evaluator import build
from tests.leaderboard.test_models import model_run, score

pytestmark = pytest.mark.django_db


def found(client: Client, query: str) -> list[str]:
    """Return the slugs of the page, which are those of the API."""
    page = [row.slug for row in client.get(f"/problems/?{query}").context["page"]]
    assert [row["slug"] for row in client.get(f"/api/v1/problems/?{query}").json()["results"]] == page
    return page


def test_solved_means_a_correct_ranked_score_on_that_target(client: Client) -> None:
    for slug in ("slow_one", "waiting", "wrong", "untried"):
        build.problem(slug)
    factories.TargetFactory(slug="h100x4", title="cards")
    run = model_run("m")
    score(run, "slow_one", speedup=0.5)
    score(run, "waiting", speedup=3.0)
    score(run, "wrong", verdict="incorrect")
    Score.objects.filter(problem__slug="slow_one").update(provisional=False)
    Score.objects.filter(problem__slug="waiting").update(provisional=True)

    assert set(found(client, "solved_on=cpu4")) == {"slow_one", "waiting"}
    assert set(found(client, "unsolved_on=cpu4")) == {"wrong", "untried"}
    assert found(client, "solved_on=h100x4") == []
    assert len(found(client, "unsolved_on=h100x4")) == 4
    assert found(client, "solved_on=cpu4&q=slow") == ["slow_one"]
    Score.objects.filter(problem__slug="slow_one").update(problem_revision="an older one")
    assert found(client, "solved_on=cpu4") == ["waiting"]


def test_the_page_says_how_many_match(client: Client) -> None:
    for n in range(3):
        factories.ProblemFactory(slug=f"p{n}", number=n + 1, level=1 + n // 2)
    assert "2 of 3 problems" in client.get("/problems/?level=1").content.decode()
    assert "0 of 3 problems" in client.get("/problems/?q=zebra").content.decode()


def test_what_lies_outside_the_87_is_marked_and_can_be_filtered(client: Client) -> None:
    factories.ProblemFactory(slug="inside", number=1, spec={**factories.SPEC, "track": "pkb87"})
    factories.ProblemFactory(slug="outside", number=139, spec={**factories.SPEC, "track": "extra"})
    factories.ProblemFactory(slug="old_row", number=2)
    marked = re.findall(r"<tr>.*?</tr>", client.get("/problems/").content.decode())
    assert [("outside the 87" in row) for row in marked[1:]] == [False, False, True]
    assert "extra track" in client.get("/problems/outside/").content.decode()
    assert found(client, "track=extra") == ["outside"]
    assert found(client, "track=pkb87") == ["inside"]


def test_every_count_of_the_map_is_what_its_link_finds(client: Client) -> None:
    kinds = (["tensor"], ["tensor", "expert"], ["data"], ["tensor"])
    for n, (kind, level) in enumerate(zip(kinds, (1, 1, 2, 4), strict=True)):
        factories.ProblemFactory(slug=f"p{n}", number=n + 1, parallelism=kind, level=level)
    factories.ProblemFactory(slug="gone", number=9, parallelism=["tensor"], level=1, active=False)
    response = client.get("/problems/map/")
    assert [(line.parallelism, [c.count for c in line.cells]) for line in response.context["map"].lines] == [
        ("data", [0, 1, 0]),
        ("expert", [1, 0, 0]),
        ("tensor", [2, 0, 1]),
    ]
    table = response.content.decode().split("<table")[1].split("</table>")[0]
    links = re.findall(r'href="/problems/([^"]*)">(\d+)<', table)
    assert len(links) == 4 + 3 + 3 + 1
    for query, count in links:
        assert len(found(client, query.replace("&amp;", "&").lstrip("?"))) == int(count), query


def test_an_empty_catalogue_has_a_map(client: Client) -> None:
    assert "sync_catalog" in client.get("/problems/map/").content.decode()


def test_the_list_shows_the_best_and_ones_own_results(client: Client) -> None:
    for slug in ("a", "b", "c"):
        build.problem(slug)
    run = model_run("m")
    score(run, "a", speedup=2.5)
    Score.objects.update(provisional=False)
    rows = client.get("/problems/").content.decode()
    assert "Best on cpu4" in rows
    assert re.search(r'href="/boards/cpu4/a/">2.50×</a><span class="band">of 1 entrant</span>', rows)
    assert "Yours" not in rows
    assert ">tie</span>" not in rows
    me = factories.UserFactory()
    problem = build.problem("b")
    factories.judged(me, "incorrect", problem=problem, target=build.target())
    factories.submission(me, problem=build.problem("c"), target=build.target(), state="cancelled")
    client.force_login(me)
    assert client.get("/problems/").context["own"] == {problem.pk: "tried"}
    for mode in ("check", "quick", "profile"):
        factories.judged(me, mode=mode, problem=problem, target=build.target())
    assert client.get("/problems/").context["own"] == {problem.pk: "tried"}
    solving = factories.judged(me, problem=problem, target=build.target())
    page = client.get("/problems/")
    assert page.context["own"] == {problem.pk: "solved"}
    assert 'href="/submissions/?q=b">solved</a>' in page.content.decode()
    withdraw(by=me, submission=solving)
    assert client.get("/problems/").context["own"] == {problem.pk: "tried"}


def test_the_list_says_that_the_best_is_a_tie(client: Client) -> None:
    build.problem("a")
    score(model_run("m"), "a", speedup=1.0)
    Score.objects.update(provisional=False)
    rows = client.get("/problems/").content.decode()
    assert re.search(r'>1.00×</a> <span class="tag" title="[^"]*">tie</span><span class="band">', rows)


def test_the_list_asks_no_more_the_longer_it_is(client: Client, django_assert_max_num_queries: Any) -> None:
    run = model_run("m")
    for number in range(12):
        score(run, f"p{number}", speedup=2.5)
    client.force_login(factories.UserFactory())
    client.get("/problems/")
    with django_assert_max_num_queries(16):
        client.get("/problems/")
