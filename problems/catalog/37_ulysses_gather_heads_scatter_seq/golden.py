import torch


def golden(ranks, size, world, dtype):
    _, seq_dim, head_dim, _ = ranks[0]
    heads = torch.cat([args[0] for args in ranks], dim=head_dim)
    length = heads.shape[seq_dim]
    block = -(-length // world)
    answers = []
    for rank in range(world):
        first, last = min(rank * block, length), min((rank + 1) * block, length)
        shape = list(heads.shape)
        shape[seq_dim] = block
        out = heads.new_zeros(shape)
        out.narrow(seq_dim, 0, last - first).copy_(heads.narrow(seq_dim, first, last - first))
        answers.append(out)
    return answers
