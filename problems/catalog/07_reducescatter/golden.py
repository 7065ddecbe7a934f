import torch


def golden(ranks, size, world, dtype):
    total = torch.stack([args[0].to(dtype) for args in ranks]).sum(0)
    return [block.clone() for block in total.tensor_split(world)]
