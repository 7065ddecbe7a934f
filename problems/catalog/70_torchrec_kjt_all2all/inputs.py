import torch


def _splits(size, world, draw):
    """Features per rank: the published cycle in a new order, in one of four calls with an empty rank."""
    if size.f > 3:
        return [size.f] * world
    order = draw.permutation(world).tolist()
    splits = [1 + slot % 3 for slot in order]
    if draw.integer(0, 4) == 0:
        splits[order.index(1)] += splits[order.index(0)]
        splits[order.index(0)] = 0
    return splits


def build(size, world, draw):
    splits = _splits(size, world, draw)
    mode = draw.integer(0, 4)
    weighted = draw.integer(0, 3) == 0
    stagger = draw.integer(1, 3) if world % 2 == 0 else 1
    low, high = size.B // 2, size.B + size.B // 2
    ranks = []
    for _ in range(world):
        batch = size.B if mode < 2 else draw.integer(low, high + 1)
        strides = draw.integers((sum(splits),), low, high + 1).tolist() if mode == 3 else None
        bags = sum(strides) if strides else batch * sum(splits)
        # Floors of exponential numbers: many empty and short bags, a few long ones, mean L2 / 2.
        lengths = draw.uniform((bags,), 1e-9, 1.0, torch.float64).log() * -(size.L2 / 2 + 0.5)
        lengths = lengths.floor().clamp(max=20 * size.L2).long()
        count = int(lengths.sum())
        values = draw.integers((count,), 0, 1 << 40)
        weights = draw.payload((count,), torch.float32) if weighted else None
        ranks.append([lengths, values, list(splits), batch, None, weights, strides, stagger])
    return ranks


def upstream(size, world, trial):
    splits = [1 + rank % 3 if size.f == 3 else size.f for rank in range(world)]
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 70 + rank + 1000003 * trial)
        lengths = torch.randint(5, 21, (sum(splits), size.B), dtype=torch.int64).flatten()
        values = torch.randint(0, 1000000, (int(lengths.sum()),), dtype=torch.int64)
        ranks.append([lengths, values, list(splits), size.B, None])
    return ranks
