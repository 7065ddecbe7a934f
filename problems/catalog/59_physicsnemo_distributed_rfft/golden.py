import torch


def golden(ranks, size, world, dtype):
    field = torch.cat([args[0] for args in ranks], dim=2).to(dtype)
    _, s, dim, norm, _ = ranks[0]
    return list(torch.fft.rfft2(field, s=s, dim=dim, norm=norm).chunk(world, dim=1))
