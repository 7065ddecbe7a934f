import torch


def _traffic(size, world, draw):
    """rows[source][destination]: uneven, often empty; every source sends world * size.rows rows."""
    table = []
    for _ in range(world):
        row = draw.splits(world * size.rows, world)
        if draw.integer(0, 3) == 0:
            empty = draw.integer(0, world)
            row[(empty + 1) % world] += row[empty]
            row[empty] = 0
        table.append(row)
    return table


def _ids(draw, count, seed_size):
    """Indices into seed_size rows; in half of the draws half of them fall on few rows."""
    ids = draw.integers((count,), 0, seed_size)
    if draw.integer(0, 2):
        hubs = draw.integers((4,), 0, seed_size)
        ids = torch.where(draw.mask((count,)), hubs[draw.integers((count,), 0, 4)], ids)
    return ids


def build(size, world, draw):
    rows = _traffic(size, world, draw)
    total = world * size.rows
    ranks = []
    for rank in range(world):
        around = [(rank + step) % world for step in range(world)]
        seed_size = draw.integer(total // 2, total + 1)
        features = draw.payload((seed_size, size.hidden))
        sent = [rows[peer][rank] for peer in around]
        received = [rows[rank][peer] for peer in around]
        ranks.append([features, _ids(draw, total, seed_size), sent, received, None])
    return ranks


def upstream(size, world, trial):
    total, ranks = world * size.rows, []
    seed_size = max(1, 3 * total // 4)
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 65 + rank + 1000003 * trial)
        features = torch.randn(seed_size, size.hidden, dtype=torch.bfloat16)
        ids = torch.randint(0, seed_size, (total,), dtype=torch.int64)
        ranks.append([features, ids, [size.rows] * world, [size.rows] * world, None])
    return ranks
