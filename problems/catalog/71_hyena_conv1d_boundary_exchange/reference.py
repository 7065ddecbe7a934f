from typing import Optional

import torch
import torch.distributed as dist


def _peer(rank: int, group: Optional[dist.ProcessGroup]) -> int:
    return rank if group is None else dist.get_global_rank(group, rank)


def _halos(first: torch.Tensor, second: torch.Tensor, width: int, group: Optional[dist.ProcessGroup]):
    """The `width` samples before each half, from the neighbours in zigzag order."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    tail_first = first[..., first.shape[-1] - width :].contiguous()
    tail_second = second[..., second.shape[-1] - width :].contiguous()
    before_first, before_second = torch.zeros_like(tail_first), torch.zeros_like(tail_second)
    ops = []
    if rank > 0:
        left = _peer(rank - 1, group)
        ops.append(dist.P2POp(dist.irecv, before_first, left, group))
        ops.append(dist.P2POp(dist.isend, tail_second, left, group))
    if rank < world - 1:
        right = _peer(rank + 1, group)
        ops.append(dist.P2POp(dist.isend, tail_first, right, group))
        ops.append(dist.P2POp(dist.irecv, before_second, right, group))
    else:
        before_second.copy_(tail_first)
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return before_first, before_second


@torch.no_grad()
def solution(
    x: torch.Tensor, weight: torch.Tensor, group: Optional[dist.ProcessGroup] = None
) -> torch.Tensor:
    channels, _, taps = weight.shape
    first, second = x.chunk(2, dim=-1)
    before_first, before_second = _halos(first, second, taps - 1, group)
    rows = torch.cat(
        [torch.cat([before_first, first], dim=-1), torch.cat([before_second, second], dim=-1)], dim=0
    )
    y = torch.nn.functional.conv1d(rows, weight, groups=channels)
    return torch.cat(y.chunk(2, dim=0), dim=-1)
