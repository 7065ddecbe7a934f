import torch


def build(size, world, draw):
    empty = draw.integer(0, 4) == 0
    common = 2.0 ** draw.integer(-2, 6)
    step = draw.number(0.0, 2.0)
    order = draw.permutation(world)
    ranks = []
    for rank in range(world):
        count = 0 if empty and rank % 2 else size.n - draw.integer(0, size.n // 4 + 1)
        keys = draw.values((count,), torch.float32) * common + step * common * float(order[rank])
        few = draw.integers((count,), 1, 9).float() * common / 4
        repeats = draw.mask((count,), (0.0, 0.2, 0.6)[draw.integer(0, 3)])
        keys = torch.where(repeats, few, keys).to(torch.bfloat16)
        # A sum of -x and x would leave a zero of either sign: no key is zero.
        keys = torch.where(keys == 0, torch.full_like(keys, common), keys)
        shape = draw.integer(0, 4)
        if shape < 2:
            keys = torch.sort(keys, descending=shape == 1).values
        ranks.append([keys, None])
    return ranks


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        count = 0 if trial % 4 == 3 and rank % 2 else size.n
        torch.manual_seed(42 + 1000 * 85 + rank + 1000003 * trial)
        keys = torch.randint(-50, 50, (count,), dtype=torch.int64).to(torch.bfloat16)
        ranks.append([keys - rank * max(1, count), None])
    return ranks
