import torch


def _lengths(m, world, draw):
    """World lengths with the sum world*m, each at most 2*m: pairs of ranks trade a random part."""
    lengths = [m] * world
    order = draw.permutation(world).tolist()
    trades = [draw.integer(1, m // 2 + 1) for _ in range(world // 2)]
    if draw.integer(0, 4) == 0:
        trades[0] = m
    for pair, rows in enumerate(trades):
        lengths[order[2 * pair]] -= rows
        lengths[order[2 * pair + 1]] += rows
    return lengths


def build(size, world, draw):
    layout = draw.integer(0, 5)
    ranks = []
    for rows in _lengths(size.M, world, draw):
        if layout < 2:
            x, gather_dim = draw.payload((rows, size.N)), 0
        elif layout == 2:
            x, gather_dim = draw.payload((rows, size.N)).t(), 1
        elif layout == 3:
            x, gather_dim = draw.payload((2, rows, size.N // 2)), 1
        else:
            x, gather_dim = draw.payload((2, size.N // 2, rows)), 2
        ranks.append([x, gather_dim, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 35 + rank + 1000003 * trial)
        ranks.append([torch.randn(size.M, size.N, dtype=torch.bfloat16), 0, None])
    return ranks
