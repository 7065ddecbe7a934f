from typing import List, Optional

import torch
import torch.distributed as dist


def _row_counts(count: int, device: torch.device, group: Optional[dist.ProcessGroup]) -> List[int]:
    """Rows of every rank, by an all-reduce of a vector in which each rank fills its place."""
    sizes = torch.zeros(dist.get_world_size(group), dtype=torch.int64, device=device)
    sizes[dist.get_rank(group)] = count
    dist.all_reduce(sizes, op=dist.ReduceOp.SUM, group=group)
    return sizes.tolist()


def _everywhere(x: torch.Tensor, rows: List[int], group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """All ranks' rows on every rank: each rank sends a copy of its own to everybody."""
    world, width = len(rows), x[0].numel()
    send = x.reshape(-1).repeat(world)
    receive = torch.empty(sum(rows) * width, dtype=x.dtype, device=x.device)
    dist.all_to_all_single(receive, send, [n * width for n in rows], [x.numel()] * world, group=group)
    return receive.view(sum(rows), *x.shape[1:])


@torch.no_grad()
def solution(
    local_pos_scores: torch.Tensor,
    local_neg_scores: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    rows = _row_counts(local_pos_scores.shape[0], local_pos_scores.device, group)
    pos = _everywhere(local_pos_scores, rows, group)
    neg = _everywhere(local_neg_scores, rows, group)
    scores = torch.sigmoid(torch.cat([pos.unsqueeze(1), neg], dim=1))
    order = torch.argsort(scores, dim=1, descending=True)
    return (order == 0).to(torch.int64).argmax(dim=1) + 1
