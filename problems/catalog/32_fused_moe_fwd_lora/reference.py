from typing import List, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class _AllToAll(torch.autograd.Function):
    """Rows to the other ranks; the gradient takes the way back."""

    @staticmethod
    def forward(ctx, rows, sent, received, group):
        ctx.splits = (sent, received, group)
        if dist.get_world_size(group) == 1:
            return rows.contiguous()
        out = torch.empty((sum(received), rows.shape[1]), dtype=rows.dtype, device=rows.device)
        dist.all_to_all_single(out, rows.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        sent, received, group = ctx.splits
        return _AllToAll.apply(grad, received, sent, group), None, None, None


def _plan(
    routing_map: torch.Tensor, group: Optional[dist.ProcessGroup]
) -> Tuple[List[int], List[int], torch.Tensor]:
    """Rows to each rank, rows from each rank, rows by (source rank, local expert)."""
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    counts = routing_map.sum(dim=1)
    gathered = torch.empty(world * counts.numel(), dtype=counts.dtype, device=counts.device)
    dist.all_gather_into_tensor(gathered, counts, group=group)
    mine = gathered.view(world, world, -1)[:, rank].cpu()
    sent = counts.view(world, -1).sum(dim=1).tolist()
    return sent, mine.sum(dim=1).tolist(), mine


def _adapted(v: torch.Tensor, linear: nn.Linear, down: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """A linear layer plus its low-rank adapter, each rounded by itself."""
    return linear(v) + functional.linear(functional.linear(v, down), up)


def _reorder(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Chunks that lie by the rows and columns of `counts`, put by its columns and rows."""
    first, second = counts.shape
    chunks = rows.split(counts.flatten().tolist())
    return torch.cat([chunks[i * second + j] for j in range(second) for i in range(first)])


def _mapping(routing_map: torch.Tensor, expected: int) -> torch.Tensor:
    """Token of every routed copy: experts ascending, then tokens ascending."""
    experts, tokens = routing_map.shape
    token_ids = torch.arange(tokens, device=routing_map.device).expand(experts, -1)
    mapping = token_ids.masked_select(routing_map.bool())
    if mapping.numel() != expected:
        raise RuntimeError(f"{mapping.numel()} rows to send, but the plan has {expected}")
    return mapping


def _combine(
    rows: torch.Tensor,
    mapping: torch.Tensor,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    routing_map: torch.Tensor,
) -> torch.Tensor:
    """Weight the rows that came back and add them up per token."""
    experts, tokens = routing_map.shape
    dense = torch.zeros((tokens, experts), dtype=weights.dtype, device=weights.device)
    dense = dense.scatter_add(1, chosen, weights)
    rows = rows * dense.t().contiguous().masked_select(routing_map.bool()).unsqueeze(-1)
    out = torch.zeros((tokens, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    return out.index_add(0, mapping, rows)


def solution(
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    gate_bias: Optional[torch.Tensor],
    gate_proj: nn.Linear,
    up_proj: nn.Linear,
    down_proj: nn.Linear,
    lora_gate_A: torch.Tensor,
    lora_gate_B: torch.Tensor,
    lora_up_A: torch.Tensor,
    lora_up_B: torch.Tensor,
    lora_down_A: torch.Tensor,
    lora_down_B: torch.Tensor,
    num_experts: int,
    top_k: int,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    x = hidden_states.reshape(-1, hidden_states.shape[-1])
    probabilities = torch.softmax(functional.linear(x, gate_weight, gate_bias), dim=-1)
    weights, chosen = torch.topk(probabilities, top_k, dim=-1)
    routing_map = functional.one_hot(chosen, num_experts).sum(dim=1).t().contiguous()
    sent, received, counts = _plan(routing_map, group)
    mapping = _mapping(routing_map, sum(sent))

    rows = _AllToAll.apply(x.index_select(0, mapping), sent, received, group)
    rows = _reorder(rows, counts)
    gate = functional.silu(_adapted(rows, gate_proj, lora_gate_A, lora_gate_B))
    rows = gate * _adapted(rows, up_proj, lora_up_A, lora_up_B)
    rows = _adapted(rows, down_proj, lora_down_A, lora_down_B)
    rows = _reorder(rows, counts.t())
    rows = _AllToAll.apply(rows, received, sent, group)

    return _combine(rows, mapping, weights, chosen, routing_map)
