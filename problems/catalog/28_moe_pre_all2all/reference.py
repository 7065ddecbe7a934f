from typing import List, Optional, Tuple

import torch
import torch.distributed as dist


def _all_to_all(
    rows: torch.Tensor, sent: List[int], received: List[int], group: Optional[dist.ProcessGroup]
) -> torch.Tensor:
    if dist.get_world_size(group) == 1:
        return rows.contiguous()
    out = torch.empty((sum(received), *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    dist.all_to_all_single(out, rows.contiguous(), received, sent, group=group)
    return out


@torch.no_grad()
def solution(
    hidden_states: torch.Tensor,
    expert_mask: torch.Tensor,
    num_experts: int,
    input_splits: List[int],
    output_splits: List[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Size]:
    hidden_states = hidden_states.reshape(-1, hidden_states.shape[-1])
    shape = hidden_states.shape
    routing_map = expert_mask.sum(dim=1)

    token_ids = torch.arange(shape[0], device=hidden_states.device).expand(num_experts, -1)
    mapping = token_ids.masked_select(routing_map.bool())
    permuted = hidden_states.index_select(0, mapping)
    if permuted.shape[0] != sum(input_splits):
        raise RuntimeError(f"{permuted.shape[0]} rows to send, but the splits add up to {sum(input_splits)}")

    received = _all_to_all(permuted, input_splits, output_splits, group)

    # Chunks arrive by (source rank, local expert) and leave by (local expert, source rank).
    world, local_experts = num_global_tokens_per_local_expert.shape
    chunks = received.split(num_global_tokens_per_local_expert.flatten().tolist())
    regrouped = torch.cat([chunks[s * local_experts + e] for e in range(local_experts) for s in range(world)])
    return regrouped, routing_map, mapping, shape
