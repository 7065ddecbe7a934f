import math

import torch


def _old_logprobs(hidden, weight, labels, draw):
    """Near the true log-probabilities without the whole projection.

    For a normal weight the log-sum-exp of a row is about log V + |h|²/2; only the target's logit is
    computed.
    """
    picked = (hidden.float() * weight[labels].float()).sum(-1)
    about = picked - math.log(weight.shape[0]) - hidden.float().square().sum(-1) / 2
    return about + draw.normal(labels.shape, torch.float32, std=0.5)


def build(size, world, draw):
    ignore = (-100, -1)[draw.integer(0, 2)]
    far = draw.integer(0, world) if draw.integer(0, 4) == 0 else None
    ranks = []
    for rank in range(world):
        hidden = draw.normal((size.M, size.N), std=size.N**-0.5)
        weight = draw.normal((size.V, size.N))
        labels = draw.integers(size.M, 0, size.V)
        old = _old_logprobs(hidden, weight, labels, draw)
        if rank == far:
            old[0] += 25.0
        invalid = draw.mask(size.M, draw.number(0.1, 0.4))
        invalid[0] = False
        labels[invalid] = ignore
        advantages = draw.normal(size.M, mean=draw.number(-2.0, 2.0))
        ranks.append([hidden, weight, labels, old.to(torch.bfloat16), advantages, ignore])
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
