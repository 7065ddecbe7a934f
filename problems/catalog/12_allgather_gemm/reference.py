import torch
import torch.distributed as dist


@torch.no_grad()
def solution(A_local: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    A_local = A_local.contiguous()
    slices = [torch.empty_like(A_local) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, A_local)
    A = torch.cat(slices, dim=1)
    return torch.matmul(A, B)
