import torch


def _ids(draw, rows, num_nodes, mode, world, favourite):
    """Ids of one rank: uniform, power-law (few ids, many times), or nearly all for one owner."""
    if mode == 0:
        return draw.integers((rows,), 0, num_nodes)
    ids = (draw.uniform((rows,), 0.0, 1.0, torch.float64).pow(4) * num_nodes).long()
    if mode == 1:
        return ids
    owned = (ids // world * world + favourite).clamp(max=num_nodes - world + favourite)
    return torch.where(draw.mask((rows,), 0.9), owned, ids)


def build(size, world, draw):
    num_nodes = -(-size.num_nodes // world) * world
    counts = draw.splits(world * size.n, world, at_least=size.n // 2)
    if draw.integer(0, 4) == 0:
        # One rank brings nothing; its neighbour brings its share too.
        empty = draw.integer(0, world)
        counts[(empty + 1) % world] += counts[empty]
        counts[empty] = 0
    mode, favourite = draw.integer(0, 3), draw.integer(0, world)
    ranks = []
    for rows in counts:
        ids = _ids(draw, rows, num_nodes, mode, world, favourite)
        ranks.append([ids, draw.payload((rows, size.d)), num_nodes, None])
    return ranks


def upstream(size, world, trial):
    num_nodes = -(-size.num_nodes // world) * world
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 67 + rank + 1000003 * trial)
        ids = torch.randint(0, num_nodes, (size.n,), dtype=torch.int64)
        ranks.append([ids, torch.randn(size.n, size.d, dtype=torch.bfloat16), num_nodes, None])
    return ranks
