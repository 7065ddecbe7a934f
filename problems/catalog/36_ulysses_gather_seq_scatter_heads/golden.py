import torch


def golden(ranks, size, world, dtype):
    _, seq_dim, head_dim, _, kept = ranks[0]
    sequence = torch.cat([args[0] for args in ranks], dim=seq_dim)
    if kept % world:
        sequence = sequence.narrow(seq_dim, 0, kept)
    return list(sequence.chunk(world, dim=head_dim))
