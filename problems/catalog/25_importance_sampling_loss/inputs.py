import math

import torch


def _favour(hidden, weight, labels, draw):
    """Move each token's hidden state so that its class is about as probable as one of V equal ones.

    Returns what its log-probability is near: the log-sum-exp of a row is log V + |h|²/2 to within a few tenths, and the
    projection itself would take too long here.
    """
    target = weight[labels].float()
    norm = target.square().sum(-1)
    about = -math.log(weight.shape[0]) * draw.uniform(labels.shape, 0.98, 1.2)
    for _ in range(3):  # the move changes |h|
        wanted = about + math.log(weight.shape[0]) + hidden.square().sum(-1) / 2
        hidden += ((wanted - (hidden * target).sum(-1)) / norm).unsqueeze(-1) * target
    return about


def build(size, world, draw):
    ignore = (-100, -1)[draw.integer(0, 2)]
    far = draw.integer(0, world) if draw.integer(0, 4) == 0 else None
    # Logits spread so far that a few hundred classes, others for each token, make up its sum of exponentials: neither a
    # part of the vocabulary nor the length of h tells that sum.
    spread = draw.number(0.6, 0.66) * math.sqrt(2 * math.log(size.V))
    ranks = []
    for rank in range(world):
        hidden = draw.normal((size.M, size.N), torch.float32, std=spread * size.N**-0.5)
        weight = draw.normal((size.V, size.N))
        labels = draw.integers(size.M, 0, size.V)
        old = _favour(hidden, weight, labels, draw) + draw.normal(labels.shape, torch.float32, std=0.5)
        if rank == far:
            old[0] += 25.0
        invalid = draw.mask(size.M, draw.number(0.1, 0.4))
        invalid[0] = False
        labels[invalid] = ignore
        advantages = draw.normal(size.M, mean=draw.number(-2.0, 2.0))
        ranks.append([hidden.to(torch.bfloat16), weight, labels, old.to(torch.bfloat16), advantages, ignore])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 25 + rank + 1000003 * trial)
        hidden = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        weight = torch.randn(size.V, size.N, dtype=torch.bfloat16)
        labels = torch.randint(0, size.V, (size.M,))
        old, advantages = (torch.randn(size.M, dtype=torch.bfloat16) for _ in range(2))
        ranks.append([hidden, weight, labels, old, advantages, -100])
    return ranks
