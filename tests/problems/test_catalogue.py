"""The catalogue's mirror, list, prompts and API."""

from typing import Any

import pytest
from django.test import Client

from portal.submissions.validation import check_entry
from problems import names, prompts, registry
from problems.models import Problem, Target
from problems.services import sync_catalog
from tests import factories


@pytest.fixture
def synced(db: None) -> Any:
    return sync_catalog()


def test_sync_mirrors_the_catalogue_and_is_idempotent(synced: Any) -> None:
    assert set(synced.problems) == {p.slug for p in registry.all_problems()}
    assert {"allreduce", "clip_grad_norm_no_ep"} <= set(synced.problems)
    row = Problem.objects.get(slug="allreduce")
    truth = registry.load_problem("allreduce")
    assert (row.number, row.score_revision, row.bound) == (1, truth.score_revision, truth.bound)
    assert row.spec["arguments"][0]["name"] == "tensor"
    assert "def solution" in row.spec["reference"]
    assert Target.objects.get(slug="cpu4").cells == ["tiny"]
    before = list(Problem.objects.order_by("pk").values())
    sync_catalog()
    assert list(Problem.objects.order_by("pk").values()) == before


def test_a_problem_of_another_track_does_not_count_for_the_87(synced: Any) -> None:
    counting = set(Problem.objects.of_track().values_list("slug", flat=True))
    assert counting == {p.slug for p in registry.all_problems("pkb87")}
    assert "ulysses_attention_e2e_fixed" not in counting
    others = Problem.objects.of_track("extra").values_list("slug", flat=True)
    assert "ulysses_attention_e2e_fixed" in others
    factories.ProblemFactory(slug="names_no_track", number=9998)
    assert Problem.objects.of_track().filter(slug="names_no_track").exists()


def test_what_left_the_catalogue_is_retired_and_comes_back(synced: Any, client: Client) -> None:
    factories.ProblemFactory(slug="old_one", number=9999)
    assert sync_catalog().retired == ("old_one",)
    assert client.get("/problems/old_one/").status_code == 404
    assert client.get("/api/v1/problems/old_one/").status_code == 404
    Problem.objects.filter(slug="allreduce").update(active=False)
    sync_catalog()
    assert Problem.objects.get(slug="allreduce").active


def test_every_problem_has_a_page_a_prompt_and_an_api_answer(synced: Any, client: Client) -> None:
    for slug in synced.problems:
        page = client.get(f"/problems/{slug}/")
        assert page.status_code == 200, slug
        assert Problem.objects.get(slug=slug).title in page.content.decode().replace("&amp;", "&").replace(
            "&#x27;", "'"
        )
        assert client.get(f"/api/v1/problems/{slug}/").status_code == 200, slug
        text = client.get(f"/api/v1/problems/{slug}/prompt/?as=text&target=cpu4").content.decode()
        assert "def solution" in text, slug


def build(**fields: Any) -> prompts.Prompt:
    hardware = {"title": "4 cards", "ranks": 4, "backend": "nccl", "device": "cuda", "cells": ["default"]}
    values = {
        "slug": "allreduce",
        "title": "All-reduce",
        "spec": factories.SPEC,
        "target": "h100x4",
        "hardware": hardware,
        "variant": "zero-shot",
    }
    return prompts.build_prompt(**{**values, **fields})


def test_a_prompt_is_stable_and_its_hash_is_of_its_text() -> None:
    import hashlib

    first, again = build(), build()
    assert first == again
    assert first.sha256 == hashlib.sha256(first.text.encode()).hexdigest()
    assert build(variant="one-shot").sha256 != first.sha256
    changed = {**factories.SPEC, "semantics": "Something else."}
    assert build(spec=changed).sha256 != first.sha256
    with pytest.raises(ValueError, match="variants"):
        build(variant="ten-shot")


def test_a_prompt_says_all_that_is_needed() -> None:
    text = build().text
    for part in (
        "The sum over all ranks.",
        "`tensor`",
        "(M, N)",
        "bfloat16",
        "def solution",
        "4 cards",
        "tiny: M = 64",
    ):
        assert part in text
    assert "CUDA" in text
    cpu = {"title": "CPU", "ranks": 4, "backend": "gloo", "device": "cpu", "cells": ["tiny"]}
    assert "CUDA" not in build(hardware=cpu).text.split("## Rules")[1]


@pytest.mark.django_db
def test_the_prompt_api_refuses_unknown_options(client: Client) -> None:
    factories.ProblemFactory()
    factories.TargetFactory()
    url = "/api/v1/problems/1/prompt/"
    good = client.get(f"{url}?target=cpu4&as=text")
    assert good["Content-Type"].startswith("text/plain")
    assert good["X-Prompt-Sha256"] == client.get(f"{url}?target=cpu4").json()["sha256"]
    assert client.get(f"{url}?target=none").json()["code"] == "target.unknown"
    assert client.get(f"{url}?target=cpu4&variant=none").json()["code"] == "variant.unknown"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("", ["allreduce", "moe_layer", "tp_norm"]),
        ("q=moe", ["moe_layer"]),
        ("q=norm+tp", ["tp_norm"]),
        ("q=3", ["tp_norm"]),
        ("level=2", ["moe_layer"]),
        ("domain=llm", ["moe_layer", "tp_norm"]),
        ("parallelism=expert", ["moe_layer"]),
        ("collective=all_to_all", ["moe_layer"]),
        ("bound=memory&domain=llm", ["tp_norm"]),
    ],
)
def test_filters_narrow_the_page_and_the_api(client: Client, query: str, slugs: list[str]) -> None:
    factories.ProblemFactory(slug="allreduce", number=1)
    factories.ProblemFactory(
        slug="moe_layer",
        number=2,
        level=2,
        domain="llm",
        parallelism=["expert"],
        collectives=["all_to_all"],
        bound="nvlink",
    )
    factories.ProblemFactory(
        slug="tp_norm",
        number=3,
        level=3,
        domain="llm",
        parallelism=["tensor"],
        collectives=["all_reduce"],
        bound="memory",
    )
    page = client.get(f"/problems/?{query}")
    assert [row.slug for row in page.context["page"]] == slugs
    answer = client.get(f"/api/v1/problems/?{query}")
    if query == "level=x":
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "level")
    else:
        assert [row["slug"] for row in answer.json()["results"]] == slugs


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["parallelism=exp", "level=x", 'collective="'])
def test_a_filter_that_knows_no_such_value_is_refused(client: Client, query: str) -> None:
    factories.ProblemFactory(slug="moe_layer", number=2, parallelism=["expert"])
    assert client.get(f"/problems/?{query}").status_code == 400
    answer = client.get(f"/api/v1/problems/?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, query.split("=")[0])


def test_the_problem_page_shows_phases_for_both_forms_of_the_switch(synced: Any, client: Client) -> None:
    page = client.get("/problems/allreduce/")
    row = next(r for r in page.context["roofs"] if (r["target"].slug, r["size"]) == ("h100x4", "default"))
    (reduction, switched), (other, plain) = row["forms"]
    assert (reduction, other) == (True, False)
    assert plain["t_roof_us"] == pytest.approx(1.5 * switched["t_roof_us"])
    assert "4.66 µs" in page.content.decode()
    assert "6.99 µs" in page.content.decode()
    roofs = page.content.decode().partition("What bounds it</h2>")[2].partition("</section>")[0]
    on_cards, on_cpu = (
        [line for line in roofs.split("<tr>") if f"/boards/{t}/" in line] for t in ("h100x4", "cpu4")
    )
    assert all("nvlink" in line for line in on_cards)
    assert all("(link)" in line and "nvlink" not in line for line in on_cpu)
    assert on_cards
    assert on_cpu
    same = client.get("/problems/allgather/").context["roofs"]
    assert {len(r["forms"]) for r in same if r["target"].ranked} == {1}


def test_a_target_that_measures_no_times_has_no_roofline(synced: Any, client: Client) -> None:
    page = client.get("/problems/allreduce/").content.decode()
    lines = page.partition("What bounds it</h2>")[2].partition("</section>")[0].split("<tr>")
    (untimed,) = [line for line in lines if "h200x1" in line]
    assert "µs" not in untimed
    assert "measures no times" in untimed
    told = client.get("/api/v1/problems/allreduce/").json()["spec"]["roofline"]
    assert "h200x2" in told
    assert "h200x1" not in told


def test_the_problem_page_shows_the_official_target_first_and_folds_the_rest(
    synced: Any, client: Client
) -> None:
    text = client.get("/problems/allreduce/").content.decode()
    first, _, folded = text.partition("<summary>Other targets</summary>")
    assert 'aria-label="Roofline"' in first
    for slug in ("b200x4", "cpu4", "h200x1", "h200x2", "h200x4"):
        assert f">{slug}<" not in first.partition('aria-label="Roofline"')[2], slug
        assert f">{slug}<" in folded.partition("</details>")[0], slug


def test_the_problem_page_tells_the_commands_to_start_from(synced: Any, client: Client) -> None:
    text = client.get("/problems/allreduce/").content.decode()
    assert "curl -so solution.py http://testserver/problems/allreduce/starter.py" in text
    assert 'href="/problems/allreduce/starter.py" download>Download 1_allreduce.py</a>' in text
    assert "-F file=@solution.py -F problem=allreduce -F target=h100x4" in text
    assert "def solution" in client.get("/api/v1/problems/allreduce/").json()["spec"]["reference"]


def test_every_problem_has_a_file_to_start_from_that_the_door_takes(synced: Any, client: Client) -> None:
    numbers = {problem.slug: problem.number for problem in registry.all_problems()}
    for slug, number in numbers.items():
        answer = client.get(f"/problems/{slug}/starter.py")
        assert answer["Content-Type"] == "text/x-python; charset=utf-8"
        name = f"{number}_{slug}.py"
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        assert names.problem_of(name, numbers) == slug
        text = answer.content.decode()
        problem = registry.load_problem(slug)
        check_entry(text, len(problem.arguments))
        assert text.startswith(f"# Problem {number}: {problem.title}\n")
        assert text.endswith((problem.folder / "reference.py").read_text())
    assert client.get("/problems/allreduc/starter.py").status_code == 404


def test_the_problem_page_says_on_which_target_a_sample_is_judged(synced: Any, client: Client) -> None:
    page = client.get("/problems/allreduce/").content.decode()
    for file, verdict in (
        ("allreduce_deadlock.py", "timeout on cpu4"),
        ("allreduce_two_shot_cuda.py", "correct on h200x1"),
    ):
        assert f"{file}</span>, meant to be {verdict}</summary>" in page
