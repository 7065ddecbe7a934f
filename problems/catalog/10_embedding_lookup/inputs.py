import torch


def _lengths(rows, world, draw):
    """How many rows each rank wants: `rows` on average; now and then one rank wants none."""
    lengths = [rows] * world
    order = draw.permutation(world).tolist()
    for fewer, more in zip(order[::2], order[1::2], strict=True):
        moved = draw.integer(0, rows // 4 + 1)
        if fewer == order[0] and draw.integer(0, 8) == 0:
            moved = rows
        lengths[fewer] -= moved
        lengths[more] += moved
    return lengths


def _indices(count, rows, world, draw):
    """Uneven over the owners (some get nothing), a quarter of each owner's share on one hot row."""
    parts = []
    for owner, share in enumerate(draw.splits(count, world)):
        local = draw.integers(share, 0, rows)
        local[draw.mask(share, 0.25)] = draw.integer(0, rows)
        parts.append(local + owner * rows)
    return torch.cat(parts)[draw.permutation(count)]


def build(size, world, draw):
    return [
        [_indices(count, size.M, world, draw), draw.payload((size.M, size.N))]
        for count in _lengths(size.M, world, draw)
    ]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 10 + rank + 1000003 * trial)
        shard = torch.randn(size.M, size.N, dtype=torch.bfloat16)
        ranks.append([torch.randint(0, world * size.M, (size.M,)), shard])
    return ranks
