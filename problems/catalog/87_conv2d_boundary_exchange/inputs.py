import torch


def build(size, world, draw):
    std = (size.C * size.k * size.k) ** -0.5
    no_bias = draw.integer(0, 4) == 0
    ranks = []
    for _ in range(world):
        x = draw.normal((1, size.C, size.h, size.w))
        weight = draw.normal((size.C, size.C, size.k, size.k), std=std)
        bias = None if no_bias else draw.values((size.C,))
        ranks.append([x, weight, bias, 1, size.p, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 87 + rank + 1000003 * trial)
        x = torch.randn(1, size.C, size.h, size.w, dtype=torch.bfloat16)
        weight = torch.randn(size.C, size.C, size.k, size.k, dtype=torch.bfloat16)
        ranks.append([x, weight, torch.randn(size.C, dtype=torch.bfloat16), 1, size.p, None])
    return ranks
