import torch


def _splits(rows, rank, world, draw):
    """Rows of one rank for every rank: at most rows/world for itself, one other block often empty."""
    own = draw.integer(0, rows // world + 1)
    others = draw.splits(rows - own, world - 1)
    if len(others) > 1 and draw.integer(0, 2):
        others[1] += others[0]
        others[0] = 0
    order = draw.permutation(world - 1).tolist()
    others = [others[i] for i in order]
    return [*others[:rank], own, *others[rank:]]


def build(size, world, draw):
    sent = [_splits(size.M, rank, world, draw) for rank in range(world)]
    received = [list(column) for column in zip(*sent, strict=True)]
    return [[draw.payload((size.M, size.N)), sent[rank], received[rank], None] for rank in range(world)]


def upstream(size, world, trial):
    splits = [size.M // world] * world
    splits[-1] += size.M % world
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 27 + rank + 1000003 * trial)
        rows = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        ranks.append([rows, list(splits), list(splits), None])
    return ranks
