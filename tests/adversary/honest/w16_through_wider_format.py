import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = torch.empty((dist.get_world_size(), *tensor.shape), dtype=tensor.dtype)
    dist.all_gather_into_tensor(out, tensor.float().mul(1.0).to(tensor.dtype))
    return out
