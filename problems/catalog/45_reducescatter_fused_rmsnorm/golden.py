import torch


def golden(ranks, size, world, dtype):
    _, gamma, eps = ranks[0]
    rows = torch.stack([args[0].to(dtype) for args in ranks]).mean(0).view(-1, gamma.numel())
    length = torch.sqrt(torch.linalg.vector_norm(rows, dim=-1, keepdim=True) ** 2 / gamma.numel() + eps)
    return list((gamma.to(dtype) * rows / length).chunk(world))
