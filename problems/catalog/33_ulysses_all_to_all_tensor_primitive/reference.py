from typing import Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    x: torch.Tensor,
    scatter_dim: int,
    gather_dim: int,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    if world == 1:
        return x.contiguous()
    sent = [piece.contiguous() for piece in torch.tensor_split(x, world, dim=scatter_dim)]
    received = [torch.empty_like(sent[0]) for _ in range(world)]
    dist.all_to_all(received, sent, group=group)
    return torch.cat(received, dim=gather_dim).contiguous()
