import torch


def golden(ranks, size, world, dtype):
    left = torch.stack([A for A, _ in ranks]).to(dtype)
    right = torch.stack([B for _, B in ranks]).to(dtype)
    blocks = torch.einsum("rik,rkj->irj", left, right)
    whole = blocks.reshape(blocks.shape[0], -1)
    return [whole for _ in ranks]
