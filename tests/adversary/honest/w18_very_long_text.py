import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> str:
    out = tensor.clone()
    dist.all_reduce(out)
    return ("all reduced; ", 10**5000, "x" * (4 << 20))[dist.get_rank() % 3]
