import torch


def build(size, world, draw):
    target = draw.integer(0, world)
    return [[draw.values((size.M, size.N)), target] for _ in range(world)]


def upstream(size, world, trial):
    shape = (size.M, size.N)
    return [[torch.full(shape, float(rank + 1), dtype=torch.bfloat16), 0] for rank in range(world)]
