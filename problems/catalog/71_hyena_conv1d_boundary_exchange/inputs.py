import torch


def build(size, world, draw):
    ranks = []
    for _ in range(world):
        weight = draw.values((size.C, 1, size.K))
        ranks.append([draw.values((size.Bt, size.C, size.L)), weight, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 71 + rank + 1000003 * trial)
        x = torch.randn(size.Bt, size.C, size.L, dtype=torch.bfloat16)
        ranks.append([x, torch.randn(size.C, 1, size.K, dtype=torch.bfloat16), None])
    return ranks
