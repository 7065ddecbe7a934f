from typing import Optional

import torch
import torch.distributed as dist


def _with_halos(x: torch.Tensor, padding: int, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """The band with `padding` rows of each neighbour (zeros at the outer borders)."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    edges = torch.stack([x[:, :, :padding], x[:, :, x.shape[2] - padding :]]).contiguous()
    gathered = [torch.empty_like(edges) for _ in range(world)]
    dist.all_gather(gathered, edges, group=group)
    zeros = torch.zeros_like(edges[0])
    above = gathered[rank - 1][1] if rank > 0 else zeros
    below = gathered[rank + 1][0] if rank < world - 1 else zeros
    return torch.cat([above, x, below], dim=2)


@torch.no_grad()
def solution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: Optional[torch.Tensor],
    stride: int = 1,
    padding: int = 1,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    if padding == 0 or dist.get_world_size(group) == 1:
        return torch.nn.functional.conv2d(x, weight, bias, stride=stride, padding=padding)
    band = _with_halos(x, padding, group)
    return torch.nn.functional.conv2d(band, weight, bias, stride=stride, padding=(0, padding))
