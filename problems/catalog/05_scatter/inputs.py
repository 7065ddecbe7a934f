import torch


def build(size, world, draw):
    source = draw.integer(0, world)
    shape = (size.M, size.N)
    return [[draw.payload((world, *shape) if rank == source else shape), source] for rank in range(world)]


def upstream(size, world, trial):
    shape = (size.M, size.N)
    stack = torch.stack([torch.full(shape, float(to + 1), dtype=torch.bfloat16) for to in range(world)])
    return [[stack], *([torch.zeros(shape, dtype=torch.bfloat16)] for _ in range(1, world))]
