import torch


def golden(ranks, size, world, dtype):
    left = torch.cat([A_local for A_local, _ in ranks], dim=1).to(dtype)
    right = torch.cat([B_local for _, B_local in ranks], dim=0).to(dtype)
    return [rows @ right for rows in left.chunk(world)]
