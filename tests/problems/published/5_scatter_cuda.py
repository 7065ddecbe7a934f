import torch
import torch.distributed as dist
from utils.cuda_helpers import compile_cuda_extension  # noqa: F401


@torch.no_grad()
def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == src:
        out = torch.empty_like(tensor[0])
        reqs = []
        for r in range(world):
            if r == src:
                out.copy_(tensor[r])
            else:
                reqs.append(dist.isend(tensor[r].contiguous(), dst=r))
        for q in reqs:
            q.wait()
    else:
        out = torch.empty_like(tensor)
        dist.irecv(out, src=src).wait()
    return out
