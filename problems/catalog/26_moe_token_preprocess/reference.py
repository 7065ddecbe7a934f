from typing import Optional, Tuple

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    expert_mask: torch.Tensor, num_experts: int, group: Optional[dist.ProcessGroup] = None
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    world = dist.get_world_size(group)
    rank = dist.get_rank(group)
    local_experts = num_experts // world

    counts = expert_mask.sum(dim=(1, 2))
    input_splits = counts.view(world, local_experts).sum(dim=1).to("cpu", torch.int64)

    gathered = torch.empty(world * num_experts, dtype=counts.dtype, device=counts.device)
    dist.all_gather_into_tensor(gathered, counts, group=group)
    mine = gathered.view(world, num_experts)[:, rank * local_experts : (rank + 1) * local_experts]

    output_splits = mine.sum(dim=1).to("cpu", torch.int64)
    return input_splits, output_splits, mine.contiguous().to("cpu"), mine.sum(dim=0).to("cpu")
