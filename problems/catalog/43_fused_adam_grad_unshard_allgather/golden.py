import torch

from problems import trainstep


def golden(ranks, size, world, dtype):
    grad, master, first, second = (torch.cat([args[i] for args in ranks]) for i in range(4))
    updated, _, _ = trainstep.adam_step(master, grad.to(dtype), first, second, ranks[0][4:])
    return [updated for _ in ranks]
