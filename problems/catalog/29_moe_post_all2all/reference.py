from typing import List, Optional

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


def _row_weights(
    weights: torch.Tensor, experts: torch.Tensor, num_experts: int, routing_map: torch.Tensor
) -> torch.Tensor:
    """Weight of every routed row, experts ascending, then tokens ascending."""
    dense = torch.zeros((weights.shape[0], num_experts), dtype=weights.dtype, device=weights.device)
    dense.scatter_add_(1, experts, weights)
    return dense.t().contiguous().masked_select(routing_map.bool())


@torch.no_grad()
def solution(
    expert_outputs: torch.Tensor,
    routing_weights: torch.Tensor,
    selected_experts: torch.Tensor,
    num_experts: int,
    input_splits: List[int],
    output_splits: List[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    routing_map: torch.Tensor,
    local_input_permutation_mapping: torch.Tensor,
    org_hidden_states_shape: torch.Size,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    # Chunks lie by (local expert, source rank) and travel by (source rank, local expert).
    world, local_experts = num_global_tokens_per_local_expert.shape
    chunks = expert_outputs.split(num_global_tokens_per_local_expert.t().flatten().tolist())
    rows = torch.cat([chunks[e * world + s] for s in range(world) for e in range(local_experts)])

    rows = _all_to_all(rows, output_splits, input_splits, group)

    weights = _row_weights(routing_weights, selected_experts, num_experts, routing_map)
    rows = rows * weights.unsqueeze(-1)
    out = torch.zeros(org_hidden_states_shape, dtype=rows.dtype, device=rows.device)
    return out.index_add_(0, local_input_permutation_mapping, rows)
