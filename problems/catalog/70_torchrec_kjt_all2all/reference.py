from typing import Dict, List, Optional

import torch
import torch.distributed as dist


def _exchange(x: torch.Tensor, send: List[int], receive: List[int], pg: Optional[dist.ProcessGroup]):
    """Start moving consecutive pieces of x; returns the buffer and the handle to wait for."""
    out = torch.empty(sum(receive), dtype=x.dtype, device=x.device)
    work = dist.all_to_all_single(out, x.contiguous(), receive, send, group=pg, async_op=True)
    return out, work


def _exchange_sizes(columns: List[List[int]], device: torch.device, pg: Optional[dist.ProcessGroup]):
    """One small all-to-all of all columns (a number per destination); the same columns by source."""
    world = dist.get_world_size(pg)
    send = torch.tensor(columns, dtype=torch.int64, device=device).t().contiguous()
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send, group=pg)
    return received.t().reshape(len(columns), world).tolist()


def _order(world: int, stagger: int) -> List[int]:
    step = world // stagger
    return [x + step * y for x in range(step) for y in range(stagger)]


def _by_feature(x: torch.Tensor, sizes: List[List[int]], order: List[int]) -> torch.Tensor:
    """Pieces that lie by source and feature (`sizes[source][feature]`), laid out by feature."""
    pieces = torch.split(x, [n for row in sizes for n in row])
    features = len(sizes[0])
    moved = [pieces[source * features + f] for f in range(features) for source in order]
    return torch.cat(moved) if moved else x


def _sums(lengths: torch.Tensor, sizes: List[List[int]]) -> List[List[int]]:
    """How many values belong to each piece of `lengths`."""
    pieces = iter(torch.split(lengths, [n for row in sizes for n in row]))
    return [[int(next(pieces).sum()) for _ in row] for row in sizes]


def _strides_of_sources(
    mine: int,
    batches: List[int],
    stride_per_key: Optional[List[int]],
    key_splits: List[int],
    device: torch.device,
    pg: Optional[dist.ProcessGroup],
) -> List[List[int]]:
    """Bags of each source for each local feature."""
    if stride_per_key is None:
        return [[batch] * mine for batch in batches]
    keys = torch.tensor(stride_per_key, dtype=torch.int64, device=device)
    received, work = _exchange(keys, key_splits, [mine] * len(batches), pg)
    work.wait()
    return received.view(len(batches), mine).tolist()


def _describe(
    strides: List[List[int]], batches: List[int], per_key: bool, order: List[int], device: torch.device
) -> Dict[str, torch.Tensor]:
    """The stride entries of the result."""
    if per_key:
        table = torch.tensor(strides, dtype=torch.int64, device=device).view(len(batches), -1)
        return {"stride_per_key_per_rank": table[order].t().contiguous()}
    sizes = torch.tensor(batches, dtype=torch.int64, device=device)
    return {"stride": sizes.sum(), "stride_per_rank": sizes}


@torch.no_grad()
def solution(
    lengths: torch.Tensor,
    values: torch.Tensor,
    key_splits: List[int],
    batch_size: int,
    pg: Optional[dist.ProcessGroup] = None,
    weights: Optional[torch.Tensor] = None,
    stride_per_key: Optional[List[int]] = None,
    stagger: int = 1,
) -> Dict[str, torch.Tensor]:
    world, device = dist.get_world_size(pg), lengths.device
    mine, order = key_splits[dist.get_rank(pg)], _order(world, stagger)
    strides = stride_per_key if stride_per_key is not None else [batch_size] * sum(key_splits)
    ends = torch.tensor(key_splits).cumsum(0).tolist()
    bags = [sum(strides[end - n : end]) for end, n in zip(ends, key_splits, strict=True)]
    ids = [int(piece.sum()) for piece in torch.split(lengths, bags)]
    sizes = _exchange_sizes([bags, ids, [batch_size] * world], device, pg)
    theirs = _strides_of_sources(mine, sizes[2], stride_per_key, key_splits, device, pg)
    payloads = [(lengths, bags, sizes[0]), (values, ids, sizes[1])]
    if weights is not None:
        payloads.append((weights, ids, sizes[1]))
    moving = [_exchange(x, send, receive, pg) for x, send, receive in payloads]
    for _, work in moving:
        work.wait()
    counts = _sums(moving[0][0], theirs)
    result = {
        "lengths": _by_feature(moving[0][0], theirs, order),
        "values": _by_feature(moving[1][0], counts, order),
    }
    if weights is not None:
        result["weights"] = _by_feature(moving[2][0], counts, order)
    return result | _describe(theirs, sizes[2], stride_per_key is not None, order, device)
