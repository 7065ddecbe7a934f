import torch


def build(size, world, draw):
    rows = torch.pow(2.0, draw.integers((size.M, 1), -6, 6).float())
    rows[draw.mask((size.M, 1), 0.1)] = 0.0
    epsilon = draw.number(0.5e-5, 2e-5)
    order = draw.permutation(world)
    ranks = []
    for rank in range(world):
        scale = rows * 2.0 ** int(order[rank])
        x = draw.normal((size.M, size.N), torch.float32) * scale
        ranks.append([x.to(torch.bfloat16), draw.normal((size.N,)), epsilon])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 18 + rank + 1000003 * trial)
        x = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        ranks.append([x, torch.randn(size.N, dtype=torch.bfloat16), 1e-5])
    return ranks
