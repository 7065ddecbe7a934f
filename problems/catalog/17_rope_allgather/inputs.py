import torch

HEADS, WIDTH = 8, 64


def _shapes(size, world):
    batch, length = max(1, size.M // 64), max(1, size.N // 64 // world)
    wide, narrow = (batch, length, HEADS, WIDTH), (batch, length, WIDTH)
    return wide, wide, narrow, narrow


def build(size, world, draw):
    return [[draw.normal(shape) for shape in _shapes(size, world)] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 17 + rank + 1000003 * trial)
        ranks.append([torch.randn(shape, dtype=torch.bfloat16) for shape in _shapes(size, world)])
    return ranks
