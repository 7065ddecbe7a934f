from typing import Optional, Tuple

import torch
import torch.distributed as dist


def _queries_of(owner: int, mine: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """The owner's queries on every rank; their shape travels first."""
    is_owner = dist.get_rank(group) == owner
    shape = torch.tensor(mine.shape, dtype=torch.int64, device=mine.device)
    dist.broadcast(shape, owner, group=group)
    queries = mine.contiguous() if is_owner else mine.new_empty(shape.tolist())
    dist.broadcast(queries, owner, group=group)
    return queries


def _gather_at(owner: int, mine: torch.Tensor, group: Optional[dist.ProcessGroup]) -> Optional[torch.Tensor]:
    """All ranks' tensors side by side on the owner; None elsewhere."""
    is_owner = dist.get_rank(group) == owner
    boxes = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))] if is_owner else None
    dist.gather(mine.contiguous(), boxes, owner, group=group)
    return torch.cat(boxes, dim=1) if boxes is not None else None


@torch.no_grad()
def solution(
    test_features_rank: torch.Tensor,
    train_features_rank_T: torch.Tensor,
    train_labels_rank: torch.Tensor,
    max_k: int,
    group: Optional[dist.ProcessGroup] = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    if max_k > train_features_rank_T.shape[1]:
        raise ValueError("max_k is larger than the local number of training vectors")
    for owner in range(dist.get_world_size(group)):
        queries = _queries_of(owner, test_features_rank, group)
        sims, at = torch.matmul(queries, train_features_rank_T).topk(max_k, dim=1)
        labels = train_labels_rank.expand(queries.shape[0], -1).gather(1, at)
        all_sims = _gather_at(owner, sims, group)
        all_labels = _gather_at(owner, labels, group)
        if all_sims is not None and all_labels is not None:
            best, at = all_sims.topk(max_k, dim=1)
            result = best, all_labels.gather(1, at)
    return result
