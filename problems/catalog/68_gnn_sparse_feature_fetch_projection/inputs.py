import torch

BLOCK = 1 << 17


def _table(draw, rows, width):
    """Random rows, drawn block by block: the temporaries of one draw would be several times the table."""
    table = torch.empty((rows, width), dtype=torch.bfloat16)
    for start in range(0, rows, BLOCK):
        end = min(rows, start + BLOCK)
        table[start:end] = draw.values((end - start, width))
    return table


def _ids(size, world, draw, total, shard):
    """Half of the queries anywhere, a quarter on one rank's block, a quarter on a few hot nodes; shuffled."""
    whole = draw.integers((size.Q,), 0, total)
    favourite = draw.integer(0, world)
    near = draw.integers((size.Q,), favourite * shard, min(total, (favourite + 1) * shard))
    hot = draw.integers((max(1, size.Q // 100),), 0, total)
    hot = hot[draw.integers((size.Q,), 0, hot.numel())]
    kind = draw.integers((size.Q,), 0, 4)
    return torch.where(kind < 2, whole, torch.where(kind == 2, near, hot))


def build(size, world, draw):
    total = size.num_total_nodes - draw.integer(0, world)
    shard = -(-total // world)
    ranks = []
    for rank in range(world):
        table = _table(draw, min(shard, total - rank * shard), size.E)
        ids = _ids(size, world, draw, total, shard)
        ranks.append([table, ids, draw.values((size.E, size.O)), total, None])
    return ranks


def upstream(size, world, trial):
    shard = -(-size.num_total_nodes // world)
    query = torch.arange(size.Q)
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 68 + rank + 1000003 * trial)
        table = torch.randn(shard, size.E, dtype=torch.bfloat16)
        ids = (query + rank) % world * shard + (7 * query + rank) % shard
        proj = torch.randn(size.E, size.O, dtype=torch.bfloat16)
        ranks.append([table, ids, proj, shard * world, None])
    return ranks
