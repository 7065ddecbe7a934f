"""Every problem against its specification's facts, and its declaration against what is drawn."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from problems import registry
from problems.draw import Draw
from problems.leaves import tensors

# Copied from the specifications: number, level, domain, parallelism, parameters with defaults, sizes.
SPEC: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "spec_facts.json").read_text()
)
RANKS = 4

# In-place effects that are part of the task, and one that upstream makes by accident (design, section 5).
ROLES = {
    "clip_grad_norm_no_ep": {"grad_tensors": "inout"},
    "clip_grad_norm_ep": {"non_ep_grad_tensors": "inout", "ep_grad_tensors": "inout"},
    "moe_epgroupgemm_lora_backward": {
        "grad_fc1_1_lora_A": "inout",
        "grad_fc1_2_lora_A": "inout",
        "grad_fc2_lora_B": "inout",
    },
    "deepmd_kalman_filter_optimizer": {"weights": "inout", "P": "inout"},
    "vocab_parallel_cross_entropy_loss": {"vocab_parallel_logits": "scratch"},
}

# Where a size has another number than in the specification, and why.
SIZES: dict[tuple[str, str], tuple[dict[str, int], str]] = {
    ("moe_token_preprocess", "tiny"): ({"M": 2048}, "counts must be too large for bf16"),
    ("ulysses_gather_seq_scatter_heads", "tiny"): ({"h": 8, "d": 4}, "eight ranks need eight heads"),
    ("ulysses_attention_e2e", "tiny"): ({"h": 8, "d": 4}, "eight ranks need eight heads"),
    ("torchharmonics_spherical_convolution", "tiny"): ({"nlat": 9}, "uneven latitude parts"),
    ("gnn_neighbor_sampling", "large"): ({"num_nodes": 2_000_000}, "every rank holds all row pointers"),
    ("vocab_parallel_cross_entropy_loss", "tiny"): ({"T": 32}, "T counts per batch row here; B = 2"),
    ("vocab_parallel_cross_entropy_loss", "default"): ({"T": 1024}, "T counts per batch row here; B = 8"),
    ("vocab_parallel_cross_entropy_loss", "large"): ({"T": 2048}, "T counts per batch row here; B = 8"),
}


def parameters(source: str) -> tuple[list[str], list[str]]:
    """Names and defaults of the `solution` that a source defines."""
    found = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "solution")
    return [a.arg for a in found.args.args], [ast.unparse(d) for d in found.args.defaults]


@pytest.mark.parametrize("slug", SPEC)
def test_a_problem_is_the_specified_one(slug: str) -> None:
    problem, spec = registry.load_problem(slug), SPEC[slug]
    assert (problem.number, problem.level, problem.domain) == (spec["number"], spec["level"], spec["domain"])
    assert sorted(problem.parallelism) == spec["parallelism"]
    assert problem.collectives == list(dict.fromkeys(problem.collectives)), (
        "each once, as the filter lists them"
    )
    assert all(name.isidentifier() for name in problem.collectives)
    wanted = (spec["parameters"], spec["defaults"])
    assert parameters((problem.folder / "reference.py").read_text()) == wanted
    assert parameters(f"def {problem.signature.removeprefix('def ')}: ...") == wanted
    assert [argument.name for argument in problem.arguments] == spec["parameters"]
    assert {a.name: a.role for a in problem.arguments if a.role != "dynamic"} == ROLES.get(slug, {})
    # 51 has no communication at two ranks: one expert each.
    assert problem.world_sizes == ([4, 8] if slug == "moe_ep_narrow" else [2, 4, 8])


@pytest.mark.parametrize("slug", SPEC)
def test_sizes_are_the_specified_ones(slug: str) -> None:
    """Numbers under the same name are equal but for the listed ones; other names only cut them differently."""
    problem = registry.load_problem(slug)
    assert list(problem.sizes) == ["tiny", "default", "large"]
    for size, spec in SPEC[slug]["sizes"].items():
        ours = problem.sizes[size]
        differing = {name: ours[name] for name in set(ours) & set(spec) if ours[name] != spec[name]}
        assert differing == SIZES.get((slug, size), ({}, ""))[0], size


@pytest.mark.parametrize("problem", registry.all_problems(), ids=lambda p: p.slug)
def test_drawn_arguments_are_the_declared_ones(problem: registry.Problem) -> None:
    """Both input sets: positions, dtypes; new values at every call of one, the same of the public one."""
    inputs, size = problem.module("inputs"), problem.namespace("tiny")
    first, second = (inputs.build(size, RANKS, Draw(7, call)) for call in (0, 1))
    public, again = (inputs.upstream(size, RANKS, 2) for _ in range(2))
    for ranks in (first, public):
        assert len(ranks) == RANKS
        for args in ranks:
            for argument, value in zip(problem.arguments, args, strict=False):
                kinds = {str(tensor.dtype).removeprefix("torch.") for _, tensor in tensors(value)}
                if argument.kind not in ("module", "torch.nn.Linear", "sparse"):
                    assert kinds <= {argument.dtype}, argument.name
    assert all(len(args) == len(problem.arguments) for args in first)
    assert not same(first, second)
    assert same(public, again)


def same(left: list[Any], right: list[Any]) -> bool:
    """Whether all tensors of two calls hold the same bytes."""
    mine, theirs = tensors(left), tensors(right)
    return len(mine) == len(theirs) and all(
        a.shape == b.shape and torch.equal(raw(a), raw(b))
        for (_, a), (_, b) in zip(mine, theirs, strict=True)
    )


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes: random bit patterns hold NaNs, which equal nothing."""
    flat = tensor.detach().contiguous().reshape(-1)
    return (torch.view_as_real(flat) if flat.is_complex() else flat).reshape(-1).view(torch.uint8)
