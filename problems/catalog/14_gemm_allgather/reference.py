import torch
import torch.distributed as dist


@torch.no_grad()
def solution(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    block = torch.matmul(A, B).contiguous()
    blocks = [torch.empty_like(block) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, block)
    return torch.cat(blocks, dim=1)
