from functools import cache

import torch


@cache
def _clear():
    """For every bf16 bit pattern the next one whose sigmoid is not on the edge between two bf16 values."""
    bits = torch.arange(1 << 16)
    values = torch.sigmoid(bits.to(torch.int16).view(torch.bfloat16).double())
    above, below = ((values * (1 + side)).to(torch.bfloat16) for side in (1e-5, -1e-5))
    table = bits.clone()
    for _ in range(8):
        table = torch.where(above[table] == below[table], table, (table + 1) % (1 << 16))
    return table


def _scores(draw, shape, mean):
    drawn = draw.normal(shape, mean=mean)
    bits = _clear()[drawn.view(torch.int16).long() & 0xFFFF]
    return bits.to(torch.int16).view(torch.bfloat16)


def build(size, world, draw):
    rows = draw.splits(world * size.p + world - 1, world, at_least=size.p // 2)
    return [[_scores(draw, (p,), 1.0), _scores(draw, (p, size.n), 0.0), None] for p in rows]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        rows = size.p + rank % 3
        torch.manual_seed(42 + 1000 * 69 + rank + 1000003 * trial)
        pos = torch.randn(rows, dtype=torch.bfloat16)
        ranks.append([pos, torch.randn(rows, size.n, dtype=torch.bfloat16), None])
    return ranks
