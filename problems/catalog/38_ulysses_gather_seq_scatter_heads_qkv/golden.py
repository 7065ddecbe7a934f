import torch


def golden(ranks, size, world, dtype):
    _, seq_dim, _, kept, restore = ranks[0]
    sequence = torch.cat([args[0] for args in ranks], dim=seq_dim)
    if kept and kept % world:
        sequence = sequence.narrow(seq_dim, 0, kept)
    parts = [part.chunk(world, dim=-1) for part in sequence.chunk(3, dim=-1)]
    join = torch.cat if restore else torch.stack
    axis = -1 if restore else -2
    return [join([part[rank] for part in parts], dim=axis) for rank in range(world)]
