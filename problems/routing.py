"""Expert routing for inputs of mixture-of-experts problems: skewed loads, and plans that fit them."""

from __future__ import annotations

import torch

from problems.draw import Draw

NEVER = -1e9


def popularity(draw: Draw, experts: int, spread: float = 0.8) -> torch.Tensor:
    """Log weights of the experts, float64: uneven, and in half of the draws one is never wanted."""
    weights = draw.normal(experts, torch.float64, std=spread)
    if draw.integer(0, 2):
        weights[draw.integer(0, experts)] = NEVER
    return weights


def preferences(draw: Draw, tokens: int, weights: torch.Tensor) -> torch.Tensor:
    """(tokens, experts) int64: for every token a random order of all experts, popular ones first."""
    noise = draw.uniform((tokens, len(weights)), 1e-12, 1.0, torch.float64)
    return (weights - torch.log(-torch.log(noise))).argsort(dim=1, descending=True)


def choices(draw: Draw, shape: tuple[int, ...], weights: torch.Tensor) -> torch.Tensor:
    """Expert ids of this shape, int64, drawn independently (a token may name an expert twice)."""
    edges = torch.softmax(weights, 0).cumsum(0)
    found = torch.searchsorted(edges, draw.uniform(shape, 0.0, float(edges[-1]), torch.float64), right=True)
    return found.clamp_(max=len(weights) - 1)


def expert_parallel_plan(counts: torch.Tensor) -> list[tuple[list[int], list[int], torch.Tensor]]:
    """Per rank (input splits, output splits, received rows (source rank, local expert) as int64).

    `counts` is (ranks, experts): the rows that each rank sends to each expert. Rank r owns the
    experts r*L to (r+1)*L-1, L = experts / ranks; rows travel in expert order.
    """
    world, experts = counts.shape
    by_owner = counts.view(world, world, experts // world)
    sent = by_owner.sum(2)
    return [(sent[r].tolist(), sent[:, r].tolist(), by_owner[:, r].clone()) for r in range(world)]
