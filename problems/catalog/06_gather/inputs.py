import torch


def build(size, world, draw):
    target = draw.integer(0, world)
    return [[draw.payload((size.M, size.N)), target] for _ in range(world)]


def upstream(size, world, trial):
    return [[torch.full((size.M, size.N), float(rank + 1), dtype=torch.bfloat16)] for rank in range(world)]
