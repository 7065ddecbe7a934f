import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    if dist.get_rank() != dst:
        dist.gather(tensor.contiguous(), None, dst=dst)
        return tensor
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.gather(tensor.contiguous(), parts, dst=dst)
    return torch.stack(parts)
