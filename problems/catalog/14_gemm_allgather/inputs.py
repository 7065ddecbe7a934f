import torch


def build(size, world, draw):
    return [[draw.normal((size.M, size.K)), draw.normal((size.K, size.N // world))] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 14 + rank + 1000003 * trial)
        A = torch.randn(size.M, size.K, dtype=torch.bfloat16)
        ranks.append([A, torch.randn(size.K, size.N // world, dtype=torch.bfloat16)])
    return ranks
