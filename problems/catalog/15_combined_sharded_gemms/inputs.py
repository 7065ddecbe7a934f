import torch


def build(size, world, draw):
    H, F = size.H, size.F
    ranks = []
    for _ in range(world):
        x_local = draw.normal((size.M, H // world))
        W1 = draw.normal((H, F), std=draw.number(0.7, 1.4) / H**0.5)
        ranks.append([x_local, W1, draw.normal((F, H), std=draw.number(0.7, 1.4) / F**0.5)])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 15 + rank + 1000003 * trial)
        x_local = torch.randn(size.M, size.H // world, dtype=torch.bfloat16)
        W1 = torch.randn(size.H, size.F, dtype=torch.bfloat16)
        ranks.append([x_local, W1, torch.randn(size.F, size.H, dtype=torch.bfloat16)])
    return ranks
