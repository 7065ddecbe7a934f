"""Prompts: every choice, stable hashes, refusals that name the choices, one archive of reproducible bytes."""

import ast
import hashlib
import io
import itertools
import json
import zipfile
from typing import Any

import pytest
from django.test import Client

from problems import prompts
from problems.models import Problem
from problems.prompt_examples import SOURCES
from problems.prompt_selectors import archive, choose
from tests import factories

CARDS = {
    "title": "4 cards",
    "ranks": 4,
    "backend": "nccl",
    "device": "cuda",
    "arch": "90a",
    "peaks_tflops": {"fp32": 67.0, "bf16": 989.0},
    "memory_gbs": 3350.0,
    "link_gbs": 450.0,
    "in_network_reduction": True,
}
CPU = {"title": "4 processes", "ranks": 4, "backend": "gloo", "device": "cpu", "peaks_tflops": {"bf16": 0.05}}

pytestmark = pytest.mark.django_db


def build(**fields: Any) -> prompts.Prompt:
    values = {
        "slug": "allreduce",
        "title": "All-reduce",
        "spec": factories.SPEC,
        "target": "h100x4",
        "hardware": CARDS,
        "variant": "zero-shot",
    }
    return prompts.build_prompt(**{**values, **fields})


@pytest.fixture
def catalogue() -> None:
    factories.ProblemFactory()
    factories.ProblemFactory(
        slug="moe", number=30, spec={**factories.SPEC, "semantics": "Mixing.", "track": "x"}
    )
    factories.TargetFactory()
    cards = {key: value for key, value in CARDS.items() if key not in ("title", "ranks", "backend")}
    factories.TargetFactory(slug="h100x4", title="4 cards", backend="nccl", spec=cards)


def test_every_choice_has_a_hash_of_its_own_and_keeps_it() -> None:
    def every() -> list[str]:
        one = [build(variant=v, backend=b) for v in prompts.VARIANTS for b in ("cuda", "triton")]
        two = [build(variant=v, hardware=CPU, target="cpu4") for v in prompts.VARIANTS]
        return [prompt.sha256 for prompt in one + two]

    assert len(set(every())) == 6
    assert every() == every()


def test_the_hash_does_not_hang_on_the_order_of_keys() -> None:
    """PostgreSQL's jsonb gives keys back in an order of its own, SQLite in that of writing."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert turned(factories.SPEC) == factories.SPEC
    assert build(spec=turned(factories.SPEC), hardware=turned(CARDS)) == build()


def test_a_prompt_tells_the_backend_the_hardware_and_the_dtype() -> None:
    cuda, triton, cpp = build(backend="cuda").text, build(backend="triton").text, build(hardware=CPU).text
    assert "device code in CUDA C++" in cuda
    assert "device code in Triton" in triton
    assert "no GPU" in cpp
    for part in ("sm_90a", "bf16 989, fp32 67", "3350 GB/s", "450 GB/s", "can add up", "bfloat16"):
        assert part in cuda
        assert part in triton
    assert "TFLOP" not in cpp
    assert "cannot add up" in build(hardware={**CARDS, "in_network_reduction": False}).text


def test_a_prompt_for_ranks_that_share_a_card_tells_no_peaks_and_promises_no_score() -> None:
    text = build(hardware={**CARDS, "timed": False}).text
    assert "sm_90a" in text
    assert "No times are measured here" in text
    for part in ("TFLOP", "GB/s", "time over yours", "as fast as it can"):
        assert part not in text
    assert build(hardware={**CARDS, "timed": True}).text == build(hardware=CARDS).text


def test_a_prompt_says_how_answers_are_judged_and_what_a_file_can_import() -> None:
    spec = {
        **factories.SPEC,
        "oddities": ["Nobody would do this."],
        "symbols": {"S": "T/cp", "cp": "W//2", "unused": "1", "M": "never: M is a size that no rule makes"},
        "outputs": [
            {
                **factories.SPEC["outputs"][0],
                "shape": "(S, N)",
                "tolerance": {"atol_rms": 0.03, "rtol": 0.01},
            },
            {**factories.SPEC["outputs"][0], "name": "codes", "tolerance": {"exact": True}},
            {**factories.SPEC["outputs"][0], "name": "labels", "checked_by": "validity"},
        ],
        "arguments": [
            {**factories.SPEC["arguments"][0], "name": "M", "role": "inout", "tolerance": {"rtol": 2e-5}}
        ],
    }
    text = build(spec=spec, hardware={**CARDS, "cells": ["default"]}).text
    for part in (
        "Nobody would do this.",
        "Accepted within 0.03 * RMS(expected) + 0.01 * |expected|.",
        "Compared bit for bit.",
        "Any valid answer is accepted.",
        "the change is compared. Accepted within 2e-05 * |expected|.",
        "S = T/cp, cp = W//2",
        "Judged here: default.",
        "Five draws of secret values",
        "compile_cuda_extension(name, cuda_src",
        "symm_mem.rendezvous",
    ):
        assert part in text, part
    assert "unused" not in text
    assert "never: M" not in text
    assert "utils.triton_utils" in build(spec=spec, backend="triton").text
    assert "g++" in build(hardware=CPU).text


@pytest.mark.parametrize(("backend", "sign"), [("cuda", "__global__"), ("triton", "@triton.jit")])
def test_one_shot_shows_an_answer_in_its_backend_to_another_problem(backend: str, sign: str) -> None:
    text = build(variant="one-shot", backend=backend).text
    assert sign in text
    assert sign not in build(variant="zero-shot", backend=backend).text
    assert "relu(mean" in text


@pytest.mark.parametrize("backend", SOURCES)
def test_an_example_is_a_file_with_a_solution(backend: str) -> None:
    tree = ast.parse(SOURCES[backend])
    assert "solution" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("field", ["variant", "backend", "dtype"])
def test_the_core_refuses_what_it_does_not_know(field: str) -> None:
    with pytest.raises(ValueError, match=rf"{field}s: "):
        build(**{field: "nonsense"})


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize("path", ["allreduce/prompt/", "prompts.zip"])
@pytest.mark.parametrize(
    ("field", "choices"),
    [
        ("variant", ["zero-shot", "one-shot"]),
        ("backend", ["cuda", "triton"]),
        ("target", ["cpu4", "h100x4"]),
        ("dtype", ["bf16"]),
    ],
)
def test_unknown_values_are_refused_with_the_choices(
    client: Client, path: str, field: str, choices: list[str]
) -> None:
    answer = client.get(f"/api/v1/problems/{path}", {field: "nonsense"})
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["code"], body["errors"][0]["field"]) == (f"{field}.unknown", field)
    assert body["choices"] == choices
    assert all(choice in body["detail"] for choice in choices)


@pytest.mark.usefixtures("catalogue")
def test_a_target_without_gpus_has_a_backend_of_its_own(client: Client) -> None:
    url = "/api/v1/problems/allreduce/prompt/?target=cpu4"
    assert client.get(url).json()["backend"] == "cpp"
    assert client.get(f"{url}&backend=cuda").json()["choices"] == ["cpp"]


@pytest.mark.usefixtures("catalogue")
def test_the_archive_holds_what_the_api_gives_one_by_one(client: Client) -> None:
    answer = client.get("/api/v1/problems/prompts.zip?variant=one-shot")
    assert answer["Content-Type"] == "application/zip"
    assert answer["ETag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        assert (manifest["target"], manifest["variant"], manifest["dtype"]) == ("h100x4", "one-shot", "bf16")
        files = [entry["file"] for entry in manifest["prompts"]]
        assert files == [
            f"{problem}_{backend}.txt"
            for problem, backend in itertools.product(("1_allreduce", "30_moe"), ("cuda", "triton"))
        ]
        assert bundle.namelist() == ["manifest.json", *files]
        for entry in manifest["prompts"]:
            single = client.get(
                f"/api/v1/problems/{entry['problem']}/prompt/?variant=one-shot&backend={entry['backend']}"
            ).json()
            assert bundle.read(entry["file"]).decode() == single["text"]
            assert (
                entry["sha256"] == single["sha256"] == hashlib.sha256(bundle.read(entry["file"])).hexdigest()
            )
    only = client.get("/api/v1/problems/prompts.zip?backend=triton").content
    with zipfile.ZipFile(io.BytesIO(only)) as bundle:
        assert bundle.namelist() == ["manifest.json", "1_allreduce_triton.txt", "30_moe_triton.txt"]


@pytest.mark.usefixtures("catalogue")
def test_the_archive_is_the_same_bytes_at_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = archive(choose(), Problem.objects.active())
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("zipfile.time.localtime", lambda *_: (2033, 5, 18, 3, 33, 20, 2, 138, 0))
    monkeypatch.setattr("sys.platform", "win32")
    assert archive(choose(), Problem.objects.active()) == first
    Problem.objects.filter(slug="moe").update(spec={**factories.SPEC, "semantics": "Other."})
    assert archive(choose(), Problem.objects.active()) != first


@pytest.mark.usefixtures("catalogue")
def test_the_problem_page_leads_to_every_prompt(client: Client) -> None:
    page = client.get("/problems/allreduce/").content.decode()
    for variant, backend in itertools.product(("zero-shot", "one-shot"), ("cuda", "triton")):
        query = f"target=h100x4&amp;variant={variant}&amp;backend={backend}"
        assert page.count(query) == 2, query
    assert "/api/v1/problems/prompts.zip" in page
    for variant in ("zero-shot", "one-shot"):
        assert page.count(f"target=cpu4&amp;variant={variant}&amp;backend=cpp") == 1
        assert f">{variant} C++</a>" in page
        assert f"<li>{variant}, Triton: " in page
