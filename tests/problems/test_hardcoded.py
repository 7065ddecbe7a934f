"""Arguments that a file ignores, and values that it rounds away, show in the answer.

Each row is a wrong formulation: the arguments as its author pretends they are, answered without any other error by
golden in float64. Where they are not what was drawn, four in ten calls at most may accept the answer: `check` compares
five calls, so that one file in a hundred gets through, and the ten calls or more of a timed score stop that one too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from evaluator.harness.gate import accepted, golden, make_case
from problems import registry
from problems.leaves import map_tensors

RANKS, CALLS, SECRET = 4, 40, 20261130

Wrong = Callable[[registry.Problem, list[Any]], list[Any] | None]
"""One rank's arguments as they should be, to those that a wrong file goes by; None where it is right by chance."""


def fixed(name: str, value: Any) -> Wrong:
    """A constant instead of the argument `name`."""

    def wrong(problem: registry.Problem, args: list[Any]) -> list[Any] | None:
        place = [argument.name for argument in problem.arguments].index(name)
        if args[place] == value:
            return None
        return [value if index == place else arg for index, arg in enumerate(args)]

    return wrong


def fp8(*names: str) -> Wrong:
    """Half the bytes: the arguments `names` rounded to e4m3."""

    def wrong(problem: registry.Problem, args: list[Any]) -> list[Any]:
        return [
            map_tensors(arg, _rounded) if argument.name in names else arg
            for argument, arg in zip(problem.arguments, args, strict=True)
        ]

    return wrong


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float8_e4m3fn).to(tensor.dtype)


def constants(name: str, *values: Any) -> dict[str, Wrong]:
    return {f"{name} = {value}": fixed(name, value) for value in values}


WRONG: dict[str, dict[str, Wrong]] = {
    "tp_rms_norm": constants("variance_epsilon", 1e-6, 1e-5, 1e-4, 1e-3),
    "load_balancing_loss_fn": {
        "logits in fp8": fp8("gate_logits"),
        **constants("top_k", 1, 2, 3, 4),
    },
    "fsdp_step_e2e": {
        **constants("lr", 0.08, 0.12, 0.17),
        **constants("beta1", 0.6, 0.7),
        **constants("beta2", 0.65, 0.75),
        **constants("eps", 1e-8, 0.01, 0.03),
        **constants("weight_decay", 0.38, 1.0, 2.0, 3.0, 5.0),
        **constants("step", 2, 3, 4, 5),
    },
    "openclip_contrastive_loss": {
        "features in fp8": fp8("image_features", "text_features"),
        "exchanged features in fp8": fp8("text_features"),
        **constants("logit_scale", 8.0, 10.0),
        **constants("logit_bias", -7.0, -8.0),
    },
    "gsplat_3d_gaussian_splatting": {
        **constants("eps2d", 0.3, 0.6),
        **constants("near_plane", 0.01, 0.95, 1.7),
        **constants("far_plane", 6.0, 8.0, 1e10),
    },
    "sam3_allgather_iou_suppression": constants("iou_threshold", 0.2, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9),
    "fused_moe_fwd": constants("top_k", 1, 2, 3),
    "fused_moe_fwd_lora": constants("top_k", 1, 2, 3),
    "moe_ep_balanced": constants("top_k", 1, 2, 3),
    "moe_ep_wide": constants("top_k", 1, 2, 3),
    "dinov2_distributed_knn": constants("max_k", 6, 8, 10),
    "tp_muon_orthogonalization": {
        **constants("steps", 5),
        **constants("coefficient_type", "simple", "quintic"),
    },
    "dinov2_distributed_sinkhorn_knopp": constants("n_iterations", 2, 3, 4),
}


@pytest.mark.parametrize("slug", WRONG)
def test_a_wrong_formulation_fails(slug: str) -> None:
    problem = registry.load_problem(slug)
    tried, passed = dict.fromkeys(WRONG[slug], 0), dict.fromkeys(WRONG[slug], 0)
    for call in range(CALLS):
        case = make_case(problem, "tiny", RANKS, SECRET, call)
        for name, wrong in WRONG[slug].items():
            ranks = [wrong(problem, args) for args in case.args]
            pretended = [args for args in ranks if args is not None]
            if len(pretended) == RANKS:
                tried[name] += 1
                answers = golden(problem, pretended, "tiny", RANKS)
                passed[name] += accepted(problem, case, answers) is None

    assert min(tried.values()) >= CALLS / 4, "the argument hardly varies"
    assert {name: count for name, count in passed.items() if count > 0.4 * tried[name]} == {}
