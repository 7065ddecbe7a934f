from typing import Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(x: torch.Tensor, group: Optional[dist.ProcessGroup] = None) -> torch.Tensor:
    world = dist.get_world_size(group)
    x = x.contiguous()
    if world == 1:
        return x
    out = torch.empty((world * x.shape[0], *x.shape[1:]), dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(out, x, group=group)
    return out
