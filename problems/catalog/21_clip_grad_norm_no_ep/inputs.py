import torch

from problems.leaves import Group


def build(size, world, draw):
    power = (1.0, 2.0, 3.0)[draw.integer(0, 3)]
    grads = []
    total = 0.0
    for _ in range(world):
        mine = []
        for _ in range(3):
            scale = 2.0 ** draw.integer(-3, 4)
            grad = draw.values((size.M, size.N), torch.float32)
            # One element holds a few percent of the sum of powers: a norm from a sample fails.
            share = draw.number(0.02, 0.1) * grad.abs().pow(power).sum()
            grad[draw.integer(0, size.M), draw.integer(0, size.N)] = share ** (1 / power)
            mine.append(grad.mul_(scale).to(torch.bfloat16))
            total += float(mine[-1].double().abs().pow(power).sum())
        grads.append(mine)
    # Three of four calls clip, by factors that differ; never so close to 1 that rounding decides.
    limit = total ** (1 / power) * (draw.number(0.05, 0.9) if draw.integer(0, 4) else draw.number(1.1, 2.0))
    return [[mine, limit, power, Group()] for mine in grads]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 21 + rank + 1000003 * trial)
        grads = [torch.randn(size.M, size.N, dtype=torch.bfloat16) for _ in range(3)]
        ranks.append([grads, 1.0, 2.0, Group()])
    return ranks
