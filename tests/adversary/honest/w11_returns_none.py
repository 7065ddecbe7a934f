import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(tensor.clone())
