from typing import Optional

import torch
import torch.distributed as dist

LOWER_BOUND = -5.0


def _gather_sequence(x: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """All ranks' tokens of (Bt, s, …), joined along the sequence."""
    world = dist.get_world_size(group)
    if world == 1:
        return x
    parts = torch.empty((world, *x.shape), dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(parts, x.contiguous(), group=group)
    return torch.cat(parts.unbind(0), dim=1)


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12)


def _recurrence(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """The delta rule token by token; (Bt, T, H, K or V) in fp32."""
    batch, tokens, heads, width = k.shape
    state = torch.zeros((batch, heads, width, v.shape[-1]), dtype=torch.float32, device=q.device)
    outputs = []
    for t in range(tokens):
        state = state * decay[:, t].unsqueeze(-1)
        error = v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state)
        state = state + k[:, t].unsqueeze(-1) * (beta[:, t].unsqueeze(-1) * error).unsqueeze(-2)
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(outputs, dim=1)


@torch.no_grad()
def solution(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    cp_group: Optional[dist.ProcessGroup] = None,
    tp_group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    local, heads, width = q.shape[1:]
    wide = [_gather_sequence(x, cp_group).to(torch.float32) for x in (q, k, v, g, beta)]
    queries, keys, values, gates, writes = wide
    slope = torch.exp(a_log.to(torch.float32)).view(heads, 1)
    bias = dt_bias.to(torch.float32).view(heads, width)
    decay = torch.exp(LOWER_BOUND * torch.sigmoid(slope * (gates + bias)))
    queries = _unit(queries) * width**-0.5
    o = _recurrence(queries, _unit(keys), values, decay, torch.sigmoid(writes)).to(q.dtype)
    if tp_group is not None and dist.get_world_size(tp_group) > 1:
        dist.all_reduce(o, op=dist.ReduceOp.SUM, group=tp_group)
    start = dist.get_rank(cp_group) * local
    return o[:, start : start + local].contiguous()
