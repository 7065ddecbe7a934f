import torch


def build(size, world, draw):
    ranks = []
    for _ in range(world):
        scale = 2.0 ** draw.integer(-2, 3)
        ranks.append([draw.normal((size.M, size.K // world)), draw.normal((size.K, size.N), std=scale)])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 11 + rank + 1000003 * trial)
        A_local = torch.randn(size.M, size.K // world, dtype=torch.bfloat16)
        ranks.append([A_local, torch.randn(size.K, size.N, dtype=torch.bfloat16)])
    return ranks
