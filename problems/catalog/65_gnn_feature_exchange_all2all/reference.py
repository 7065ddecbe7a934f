from typing import List, Optional

import torch
import torch.distributed as dist


def _rotate(pieces: List[torch.Tensor], rank: int) -> List[torch.Tensor]:
    """Pieces numbered by distance from this rank, put in the order of the ranks."""
    world = len(pieces)
    return [pieces[(peer - rank) % world] for peer in range(world)]


@torch.no_grad()
def solution(
    local_features: torch.Tensor,
    seed_inverse_ids: torch.Tensor,
    counts_sent: List[int],
    counts_received: List[int],
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    rank = dist.get_rank(group)
    gathered = local_features[seed_inverse_ids]
    shape = (sum(counts_sent), *local_features.shape[1:])
    out = torch.empty(shape, dtype=local_features.dtype, device=local_features.device)
    sources = list(torch.split(gathered, counts_received))
    targets = list(torch.split(out, counts_sent))
    dist.all_to_all(_rotate(targets, rank), _rotate(sources, rank), group=group)
    return out
