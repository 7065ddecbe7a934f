import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    m, n = tensor.shape
    wide = torch.full((2 * n + 3, m + 5), float("nan"), dtype=tensor.dtype)
    out = wide[1 : 2 * n + 1 : 2, 5:].t()
    out.copy_(tensor)
    packed = out.contiguous()
    dist.all_reduce(packed)
    out.copy_(packed)
    return out
