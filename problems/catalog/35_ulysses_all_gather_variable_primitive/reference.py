from typing import Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(x: torch.Tensor, gather_dim: int, group: Optional[dist.ProcessGroup] = None) -> torch.Tensor:
    world = dist.get_world_size(group)
    x = x.contiguous()
    if world == 1:
        return x
    shape = torch.tensor(x.shape, dtype=torch.int64, device=x.device)
    shapes = [torch.empty_like(shape) for _ in range(world)]
    dist.all_gather(shapes, shape, group=group)
    parts = [torch.empty(tuple(item.tolist()), dtype=x.dtype, device=x.device) for item in shapes]
    dist.all_gather(parts, x, group=group)
    return torch.cat(parts, dim=gather_dim).contiguous()
