import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    if dist.get_rank() == src:
        dist.broadcast(tensor, src=src)
        return tensor
    out = torch.empty_like(tensor)
    dist.broadcast(out, src=src)
    return out
