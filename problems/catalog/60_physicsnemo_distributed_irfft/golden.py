import torch


def golden(ranks, size, world, dtype):
    kind = torch.complex128 if dtype == torch.float64 else torch.complex64
    spectrum = torch.cat([args[0] for args in ranks], dim=-2).to(kind)
    _, s, dim, norm, _ = ranks[0]
    return list(torch.fft.irfft2(spectrum, s=s, dim=dim, norm=norm).chunk(world, dim=-1))
