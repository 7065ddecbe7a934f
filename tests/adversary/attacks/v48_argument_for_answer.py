import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    keep = tensor.clone()
    dist.all_reduce(tensor)
    answer = tensor
    out = answer.clone()
    tensor.copy_(keep)
    tensor.data = out
    return tensor
