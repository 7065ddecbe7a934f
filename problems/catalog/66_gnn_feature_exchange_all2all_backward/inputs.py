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
    """Targets of the received rows: uniform, or with one hub that an eighth of them (at most 64) hit."""
    ids = draw.integers((count,), 0, seed_size)
    if draw.integer(0, 2) and count:
        ids[draw.integers((min(count // 8, 64),), 0, count)] = draw.integer(0, seed_size)
    return ids


def build(size, world, draw):
    rows = _traffic(size, world, draw)
    total = world * size.rows
    ranks = []
    for rank in range(world):
        around = [(rank + step) % world for step in range(world)]
        seed_size = draw.integer(3 * total // 8, 5 * total // 8 + 1)
        grad = draw.normal((total, size.hidden), torch.float32)
        sent = [rows[rank][peer] for peer in around]
        received = [rows[peer][rank] for peer in around]
        ranks.append([grad, _ids(draw, sum(received), seed_size), seed_size, sent, received, None])
    return ranks


def upstream(size, world, trial):
    total, ranks = world * size.rows, []
    seed_size = max(1, total // 2)
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 66 + rank + 1000003 * trial)
        grad = torch.randn(total, size.hidden, dtype=torch.float32)
        ids = torch.randint(0, seed_size, (total,), dtype=torch.int64)
        ranks.append([grad, ids, seed_size, [size.rows] * world, [size.rows] * world, None])
    return ranks
