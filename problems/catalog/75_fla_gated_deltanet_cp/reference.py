from typing import Optional

import torch
import torch.distributed as dist


def _to_heads(x: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(Bt, s, heads, …) of this rank's tokens to (Bt, W*s, heads/W, …) of this rank's heads."""
    world = dist.get_world_size(group)
    send = torch.stack(x.chunk(world, dim=2)).contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    return torch.cat(received.unbind(0), dim=1)


def _to_tokens(x: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """(Bt, W*s, heads/W, …) of this rank's heads to (Bt, s, heads, …) of this rank's tokens."""
    world = dist.get_world_size(group)
    send = torch.stack(x.chunk(world, dim=1)).contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=group)
    return torch.cat(received.unbind(0), dim=2)


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-6)


def _recurrence(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """The delta rule token by token; (Bt, T, heads, K or V) in fp32."""
    batch, tokens, heads, width = k.shape
    state = torch.zeros((batch, heads, width, v.shape[-1]), dtype=torch.float32, device=q.device)
    outputs = []
    for t in range(tokens):
        state = state * decay[:, t, :, None, None]
        error = v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state)
        state = state + k[:, t].unsqueeze(-1) * (beta[:, t].unsqueeze(-1) * error).unsqueeze(-2)
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(outputs, dim=1)


@torch.no_grad()
def solution(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    wide = [_to_heads(x, group).to(torch.float32) for x in (q, k, v, gate, beta)]
    queries, keys, values, gates, writes = wide
    repeat = values.shape[2] // queries.shape[2]
    queries = _unit(queries.repeat_interleave(repeat, dim=2)) * q.shape[-1] ** -0.5
    keys = _unit(keys.repeat_interleave(repeat, dim=2))
    rate = torch.exp(a_log.to(torch.float32))
    decay = torch.exp(-rate * torch.nn.functional.softplus(gates + dt_bias.to(torch.float32)))
    o = _recurrence(queries, keys, values, decay, writes).to(q.dtype)
    return _to_tokens(o, group)
