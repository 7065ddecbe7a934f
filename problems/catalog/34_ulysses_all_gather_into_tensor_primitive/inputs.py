import torch


def build(size, world, draw):
    m, n = size.M, size.N
    shape = [(m, n), (m * n,), (2, m // 2, n), (n, m)][draw.integer(0, 4)]
    strided = len(shape) == 2 and draw.integer(0, 2) == 0
    ranks = []
    for _ in range(world):
        x = draw.payload(shape[::-1]).t() if strided else draw.payload(shape)
        ranks.append([x, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 34 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.M, size.N, dtype=torch.bfloat16), None])
    return ranks
