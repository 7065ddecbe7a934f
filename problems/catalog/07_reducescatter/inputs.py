import torch


def build(size, world, draw):
    return [[draw.values((world * size.M, size.N))] for _ in range(world)]


def upstream(size, world, trial):
    shape = (world * size.M, size.N)
    return [[torch.full(shape, float(rank + 1), dtype=torch.bfloat16)] for rank in range(world)]
