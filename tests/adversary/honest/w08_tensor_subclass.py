import torch
import torch.distributed as dist


class Named(torch.Tensor):
    pass


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out.as_subclass(Named)
