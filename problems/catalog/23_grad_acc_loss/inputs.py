import torch


def _scalar(value, dtype=torch.bfloat16):
    return torch.tensor(value, dtype=dtype)


def build(size, world, draw):
    limit = size.M * size.N
    counts = [draw.integer(limit // 8, limit + 1) for _ in range(world)]
    empty = draw.integer(0, world) if draw.integer(0, 2) else None
    if empty is not None:
        counts[empty] = 0
    n = sum(counts) + draw.integer(1, 3 * world * limit)
    g1 = draw.number(0.25, 4.0)
    g2 = draw.number(0.25, 4.0) / n if draw.integer(0, 4) else None
    ranks = []
    for rank in range(world):
        loss = draw.number(0.25, 12.0)
        if rank == empty:
            loss = (float("nan"), float("inf"), -float("inf"))[draw.integer(0, 3)]
        second = None if g2 is None else _scalar(g2)
        tokens = (_scalar(counts[rank], torch.int64), _scalar(n, torch.int64))
        ranks.append([_scalar(loss), *tokens, _scalar(g1), second])
    return ranks


def upstream(size, world, trial):
    count = size.M * size.N
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 23 + rank + 1000003 * trial)
        loss = torch.randn((), dtype=torch.bfloat16)
        tokens = (_scalar(count, torch.int64), _scalar(world * count, torch.int64))
        ranks.append([loss, *tokens, _scalar(1.0), _scalar(0.0)])
    return ranks
