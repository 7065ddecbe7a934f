import torch


def build(size, world, draw):
    # Down to rows whose mean square is small against any epsilon, so that each of them matters.
    rows = torch.pow(2.0, draw.integers((size.M, 1), -14, 6).float())
    rows[draw.mask((size.M, 1), 0.1)] = 0.0
    epsilon = 10.0 ** draw.number(-6.0, -2.0)
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
