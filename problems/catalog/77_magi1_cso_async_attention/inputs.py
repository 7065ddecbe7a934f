import torch


def _ranges(size, draw):
    """Overlapping stretches of the keys, R*clip rows in all."""
    total = size.R * size.clip
    lengths = draw.splits(total, size.R, at_least=size.clip // 2)
    starts = [draw.integer(0, total - length + 1) for length in lengths]
    return torch.tensor([[start, start + n] for start, n in zip(starts, lengths, strict=True)])


def build(size, world, draw):
    rows = size.R * -(-size.clip // world)
    ranges = _ranges(size, draw)
    ranks = []
    for _ in range(world):
        query = draw.normal((rows, size.Hq, size.D), std=2.0)
        key_value = draw.normal((rows, size.Hkv, 2 * size.D))
        ranks.append([query, key_value, ranges.clone(), size.R, size.clip, None])
    return ranks


def upstream(size, world, trial):
    rows = size.R * -(-size.clip // world)
    starts = torch.arange(size.R) * size.clip
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 77 + rank + 1000003 * trial)
        query = torch.randn(rows, size.Hq, size.D, dtype=torch.bfloat16)
        key = torch.randn(rows, size.Hkv, size.D, dtype=torch.bfloat16)
        key_value = torch.cat([key, torch.randn_like(key)], dim=-1)
        ranges = torch.stack([starts, starts + size.clip], dim=1)
        ranks.append([query, key_value, ranges, size.R, size.clip, None])
    return ranks
