import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    small = tensor.abs() < torch.finfo(tensor.dtype).tiny
    mine = torch.where(small, torch.zeros_like(tensor), tensor)
    out = torch.empty((dist.get_world_size(), *tensor.shape), dtype=tensor.dtype)
    dist.all_gather_into_tensor(out, mine)
    return out
