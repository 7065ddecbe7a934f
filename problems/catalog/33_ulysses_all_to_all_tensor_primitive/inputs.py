import torch


def build(size, world, draw):
    m, n = size.M, size.N
    shape = [(m, n), (m, n), (m, 2, n // 2), (2, m // 2, n), (2, m // 2, 2, n // 2)][draw.integer(0, 5)]
    cuttable = [dim for dim, length in enumerate(shape) if length % world == 0]
    scatter_dim = cuttable[draw.integer(0, len(cuttable))]
    gather_dim = draw.integer(0, len(shape))
    reverse = tuple(reversed(range(len(shape))))
    strided = draw.integer(0, 4) == 0
    ranks = []
    for _ in range(world):
        x = draw.payload(shape[::-1]).permute(reverse) if strided else draw.payload(shape)
        ranks.append([x, scatter_dim, gather_dim, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 33 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.M, size.N, dtype=torch.bfloat16), 0, 1, None])
    return ranks
