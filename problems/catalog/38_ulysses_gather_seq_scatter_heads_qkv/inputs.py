import torch


def build(size, world, draw):
    seq_dim = draw.integer(0, 2)
    outer = (size.B, size.T) if seq_dim == 1 else (size.T, size.B)
    whole = world * size.T
    kept = [None, 0, whole, whole - world, whole - draw.integer(1, world)][draw.integer(0, 5)]
    restore = bool(draw.integer(0, 2))
    shape = (*outer, 3 * size.h * size.d)
    return [[draw.payload(shape), seq_dim, None, kept, restore] for _ in range(world)]


def upstream(size, world, trial):
    ranks = []
    for rank in range(world):
        torch.manual_seed(42 + 1000 * 38 + rank + 1000003 * trial)
        qkv = torch.randn(size.B, size.T, 3 * size.h * size.d, dtype=torch.bfloat16)
        ranks.append([qkv, 1, None, None, True])
    return ranks
