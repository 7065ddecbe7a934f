import torch


def golden(ranks, size, world, dtype):
    grid = []
    for y, s, block_size in ranks:
        factors = s.to(dtype).flatten().repeat_interleave(block_size).view(y.shape)
        grid.append(y.to(dtype) * factors)
    return [torch.stack([sent[rank] for sent in grid]) for rank in range(world)]
