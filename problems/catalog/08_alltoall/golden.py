import torch


def golden(ranks, size, world, dtype):
    grid = torch.stack([args[0] for args in ranks])  # (source, destination, M, N)
    return list(grid.transpose(0, 1).contiguous())
