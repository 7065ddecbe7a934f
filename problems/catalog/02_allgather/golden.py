import torch


def golden(ranks, size, world, dtype):
    stacked = torch.stack([args[0] for args in ranks])
    return [stacked for _ in ranks]
