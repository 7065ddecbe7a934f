from typing import Optional

import torch
import torch.distributed as dist


def _start(send: torch.Tensor, group: Optional[dist.ProcessGroup]):
    """Start an all-to-all of equal slices; returns the buffer and the handle."""
    send = send.contiguous()
    received = torch.empty_like(send)
    return received, dist.all_to_all_single(received, send, group=group, async_op=True)


def _by_head(x: torch.Tensor, world: int) -> torch.Tensor:
    """(rows, heads, D) to (W, rows, heads/W, D): a slice of heads for each rank."""
    return x.view(x.shape[0], world, -1, x.shape[-1]).transpose(0, 1)


def _all_keys(
    key_value: torch.Tensor, ranges: int, clip: int, group: Optional[dist.ProcessGroup]
) -> torch.Tensor:
    """(ranges*clip, heads/W, 2D): keys and values of all ranges for this rank's heads."""
    world, heads = dist.get_world_size(group), key_value.shape[1]
    if heads < world:
        key_value = key_value.repeat_interleave(world // heads, dim=1)
    received, work = _start(_by_head(key_value, world), group)
    work.wait()
    rows = received.view(world, ranges, -1, *received.shape[2:]).transpose(0, 1).flatten(1, 2)
    return rows[:, :clip].flatten(0, 1)


def _attend(query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Grouped-query attention; (rows, heads, D) with (keys, KV heads, 2D)."""
    keys = keys.repeat_interleave(query.shape[1] // keys.shape[1], dim=1).transpose(0, 1)
    k, v = keys.chunk(2, dim=-1)
    out = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1).unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
    )
    return out.squeeze(0).transpose(0, 1)


def _check(query: torch.Tensor, key_value: torch.Tensor, ranges: int, world: int) -> None:
    kv_heads = key_value.shape[1]
    if query.shape[0] % ranges or key_value.shape[0] % ranges:
        raise ValueError("rows are not divisible by cp_shuffle_num")
    if query.shape[1] % world or (kv_heads % world and world % kv_heads):
        raise ValueError("heads cannot be shared by the ranks")


@torch.no_grad()
def solution(
    query: torch.Tensor,
    key_value: torch.Tensor,
    k_ranges: torch.Tensor,
    cp_shuffle_num: int,
    clip_token_nums: Optional[int] = None,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    world, ranges = dist.get_world_size(group), cp_shuffle_num
    _check(query, key_value, ranges, world)
    rows, width = query.shape[0] // ranges, query.shape[-1]
    keys = _all_keys(key_value, ranges, clip_token_nums or world * rows, group)
    queries = [_by_head(part, world) for part in query.split(rows)]
    arrived, work = _start(queries[0], group)
    work.wait()
    outputs = []
    previous: Optional[torch.Tensor] = None
    for i in range(ranges):
        # On the way during this range's attention: the next queries and the output before.
        load = ([queries[i + 1]] if i + 1 < ranges else []) + ([] if previous is None else [previous])
        moving = _start(torch.cat(load, dim=-1), group) if load else None
        chosen = keys[int(k_ranges[i, 0]) : int(k_ranges[i, 1])]
        out = _attend(arrived.flatten(0, 1), chosen).reshape(world, rows, -1, width)
        if moving is not None:
            moving[1].wait()
            parts = list(moving[0].split(width, dim=-1))
            if i + 1 < ranges:
                arrived = parts.pop(0)
            outputs.extend(parts)
        previous = out
    last, work = _start(out, group)
    work.wait()
    outputs.append(last)
    return torch.cat([part.transpose(0, 1).reshape(rows, -1, width) for part in outputs])
