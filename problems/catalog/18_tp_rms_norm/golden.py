import torch


def golden(ranks, size, world, dtype):
    whole = torch.cat([x.to(dtype) for x, _, _ in ranks], dim=-1)
    mean_square = (whole * whole).mean(-1, keepdim=True)
    return [
        weight.to(dtype) * (x.to(dtype) / torch.sqrt(mean_square + epsilon)) for x, weight, epsilon in ranks
    ]
