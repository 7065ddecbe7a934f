import torch


def build(size, world, draw):
    width = size.K // world
    return [[draw.normal((size.M, width)), draw.normal((width, size.N))] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 16 + rank + 1000003 * trial)
        A_local = torch.randn(size.M, size.K // world, dtype=torch.bfloat16)
        ranks.append([A_local, torch.randn(size.K // world, size.N, dtype=torch.bfloat16)])
    return ranks
