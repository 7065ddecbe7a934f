import torch


def golden(ranks, size, world, dtype):
    joined = torch.stack([args[0] for args in ranks]).flatten(0, 1)
    return [joined for _ in ranks]
