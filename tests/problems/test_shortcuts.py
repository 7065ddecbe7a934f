"""At the sizes that are ranked a part of the data does not tell the answer, and neither do statistics of it.

Sums of many independent terms hardly vary, so inputs must see to it that some terms, none can say beforehand which,
weigh enough to be missed. Each row is a file that leaves terms out: golden's answer to the arguments it goes by.
`tests.problems.test_hardcoded` does the same at `tiny`, where every term counts anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.harness.check import margin_rank
from problems.draw import Draw
from problems.leaves import Answer, map_tensors
from problems.registry import Problem, load_problem

RANKS, SECRET = 4, 20261130

Args = list[list[Any]]
Thin = Callable[[torch.Tensor], torch.Tensor]


def every(stride: int, dim: int = 0) -> Thin:
    """One row of `stride`, the others replaced by copies of it."""

    def thin(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.index_select(dim, torch.arange(tensor.shape[dim]) // stride * stride)

    return thin


def first(share: int, dim: int = 0) -> Thin:
    """The first rows only, again and again."""

    def thin(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.index_select(dim, torch.arange(tensor.shape[dim]) % (tensor.shape[dim] // share))

    return thin


def mean(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mean(0, keepdim=True).expand_as(tensor)


def golden(problem: Problem, ranks: Args, size: Any) -> list[Answer]:
    found = problem.module("golden").golden(ranks, size, len(ranks), torch.float64)
    return [Answer(item) for item in found]


def sizes(problem: Problem, size: str, **others: int) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(problem.namespace(size)), **others})


def shares(problem: Problem, got: list[Answer], want: list[Answer]) -> float:
    return max(margin_rank(problem, one, other) for one, other in zip(got, want, strict=True))


def assert_seen(found: dict[str, list[float]], least: dict[str, float]) -> None:
    """Errors as shares of the tolerance, call by call: mostly far outside, and seldom within."""
    assert {name: found[name] for name in least if median(found[name]) < least[name]} == {}
    assert {name: of for name, of in found.items() if sum(x <= 1 for x in of) > 0.3 * len(of)} == {}


TEXTS: dict[str, tuple[Thin, float]] = {
    "half of the texts": (every(2), 2.0),
    "an eighth of the texts": (every(8), 5.0),
    "one text": (first(256), 5.0),
    "the first half": (first(2), 2.0),
    "the mean text": (mean, 5.0),
}


def _from_others(problem: Problem, ranks: Args, size: Any, thin: Thin) -> list[Answer]:
    """Each rank's loss from all of its own texts and a part of the others'."""
    answers = []
    for me in range(RANKS):
        seen = [[i, t if rank == me else thin(t), *more] for rank, (i, t, *more) in enumerate(ranks)]
        answers.append(golden(problem, seen, size)[me])
    return answers


def test_contrastive_loss_needs_all_texts_of_all_ranks() -> None:
    problem = load_problem("openclip_contrastive_loss")
    size = problem.namespace("default")
    found: dict[str, list[float]] = {name: [] for name in [*TEXTS, "half of the images", "one rank's halved"]}
    for call in range(10):
        ranks = problem.module("inputs").build(size, RANKS, Draw(SECRET, call))
        want = golden(problem, ranks, size)
        for name, (thin, _) in TEXTS.items():
            found[name].append(shares(problem, _from_others(problem, ranks, size, thin), want))
        # Own texts and images are thinned alike, so that pairs stay pairs.
        halves = [[every(2)(image), *more] for image, *more in ranks]
        found["half of the images"].append(shares(problem, golden(problem, halves, size), want))
        halved = [[i, every(2)(t) if rank == 3 else t, *more] for rank, (i, t, *more) in enumerate(ranks)]
        got = [*golden(problem, halved, size)[:3], want[3]]
        found["one rank's halved"].append(shares(problem, got, want))

    assert_seen(found, {name: least for name, (_, least) in TEXTS.items()})


def _log_probabilities(problem: Problem, size: Any, ranks: Args, thin: Thin) -> list[Answer]:
    """From a part of the vocabulary and the tokens' own classes."""
    seen = []
    for hidden, weight, labels, *more in ranks:
        own = labels[labels >= 0]
        part = thin(weight)
        part[own] = weight[own]
        seen.append([hidden, part, labels, *more])
    return golden(problem, seen, size)


def _no_projection(ranks: Args, want: list[Answer]) -> list[Answer]:
    """For logits that are normal and many, the log-sum-exp is about log V and half of their variance."""
    answers = []
    for (hidden, weight, labels, *_), (loss, none, _, *more) in zip(
        ranks, (answer.output for answer in want), strict=True
    ):
        hidden = hidden.double()
        mine = (hidden * weight[labels.clamp(min=0)].double()).sum(-1)
        about = mine - math.log(len(weight)) - hidden.square().sum(-1) / 2
        answers.append(Answer((loss, none, torch.where(labels >= 0, about, 0.0), *more)))
    return answers


@pytest.mark.parametrize("size", ["default", "large"])
def test_log_probabilities_need_the_whole_vocabulary(size: str) -> None:
    """A few tokens of one rank: the others would be like them. Of the hidden size a part."""
    problem = load_problem("importance_sampling_loss")
    some = sizes(problem, size, M=128, N=512)
    found: dict[str, list[float]] = {name: [] for name in ("half", "an eighth", "no projection")}
    for call in range(3):
        ranks = problem.module("inputs").build(some, 1, Draw(SECRET, call))
        want = golden(problem, ranks, some)
        for name, thin in {"half": every(2), "an eighth": every(8)}.items():
            found[name].append(shares(problem, _log_probabilities(problem, some, ranks, thin), want))
        found["no projection"].append(shares(problem, _no_projection(ranks, want), want))

        honest = golden(problem, ranks, some)[0].output
        rounded = map_tensors(honest, lambda t: t.to(torch.bfloat16))
        assert margin_rank(problem, Answer(rounded), want[0]) <= 0.5

    assert_seen(found, {"half": 3.0, "an eighth": 5.0, "no projection": 3.0})


ROWS: dict[str, Thin] = {
    **{f"one row of {stride}": every(stride) for stride in (2, 3, 4, 5, 8)},
    "the first half": first(2),
    "the first eighth": first(8),
}


def test_router_statistics_need_more_than_a_regular_part_of_the_rows() -> None:
    """A 256th of the rows of `large`. Rows at random would do: a mean of so many bounded terms has no large ones."""
    problem = load_problem("load_balancing_loss_fn")
    some = sizes(problem, "large", T=1 << 14)
    found: dict[str, list[float]] = {name: [] for name in ROWS}
    for call in range(10):
        ranks = problem.module("inputs").build(some, RANKS, Draw(SECRET, call))
        want = golden(problem, ranks, some)
        for name, thin in ROWS.items():
            seen = []
            for gate, experts, top_k, mask in ranks:
                part = map_tensors(gate, thin)
                kept = mask if mask is None else thin(mask.flatten()).view_as(mask)
                seen.append([part, experts, top_k, kept])
            found[name].append(shares(problem, golden(problem, seen, some), want))

    assert_seen(found, {name: 1.5 for name in ROWS})
