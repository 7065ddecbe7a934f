import torch


def golden(ranks, size, world, dtype):
    """Blocks as slices of the flat vector; the inputs keep x / s away from ties (see inputs.py)."""
    total = sum(_steps(grad.reshape(-1).to(dtype), block) for grad, block in ranks)
    return [(total / world).view(args[0].shape) for args in ranks]


def _steps(x, block):
    index = torch.arange(x.numel(), device=x.device) // block
    largest = torch.zeros(int(index[-1]) + 1, dtype=x.dtype, device=x.device)
    largest = largest.scatter_reduce(0, index, x.abs(), "amax")[index].clamp(min=1e-8)
    return torch.round(127 * x / largest) * largest / 127
