import torch


def golden(ranks, size, world, dtype):
    A = torch.cat([A_local for A_local, _ in ranks], dim=1).to(dtype)
    return [A @ B.to(dtype) for _, B in ranks]
