from typing import List, Optional

import torch
import torch.distributed as dist


def _counts(value: int, device: torch.device, group: Optional[dist.ProcessGroup]) -> List[int]:
    """One integer of every rank, on the host."""
    mine = torch.tensor([value], dtype=torch.int64, device=device)
    boxes = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(boxes, mine, group=group)
    return torch.cat(boxes).tolist()


def _exchange(keys: torch.Tensor, send: List[int], group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """Send consecutive pieces of `keys` to ranks 0, 1, …; returns what came, by source."""
    sizes = torch.tensor(send, dtype=torch.int64, device=keys.device)
    incoming = torch.empty_like(sizes)
    dist.all_to_all_single(incoming, sizes, group=group)
    receive = incoming.tolist()
    out = torch.empty(sum(receive), dtype=keys.dtype, device=keys.device)
    dist.all_to_all_single(out, keys.contiguous(), receive, send, group=group)
    return out


def _samples(keys: torch.Tensor, count: int, group: Optional[dist.ProcessGroup]):
    """`count` regular samples of every non-empty rank as (value, rank, position) columns."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    steps = torch.arange(count, device=keys.device)
    at = (steps * keys.numel() + keys.numel() // 2) // count
    found = keys[at] if keys.numel() else keys.new_full((count,), float("inf"))
    values = [torch.empty_like(found) for _ in range(world)]
    places = [torch.empty_like(at) for _ in range(world)]
    dist.all_gather(values, found, group=group)
    dist.all_gather(places, at, group=group)
    owners = torch.arange(world, device=keys.device).repeat_interleave(count)
    return rank, torch.cat(values), owners, torch.cat(places)


def _bucket_sizes(keys: torch.Tensor, counts: List[int], group: Optional[dist.ProcessGroup]) -> List[int]:
    """How many of the sorted local keys go to each rank, by splitters that all ranks agree on."""
    world = dist.get_world_size(group)
    filled = sum(1 for n in counts if n)
    rank, values, owners, places = _samples(keys, filled, group)
    real = torch.tensor(counts, device=keys.device)[owners] > 0
    values, owners, places = values[real], owners[real], places[real]
    order = torch.argsort(values, stable=True)
    cuts = [0]
    for k in range(1, world):
        chosen = order[min(k * order.numel() // world, order.numel() - 1)]
        value, owner, place = values[chosen], int(owners[chosen]), int(places[chosen])
        before = torch.searchsorted(keys, value.view(1), right=rank < owner)
        cut = place if owner == rank else int(before)
        cuts.append(max(cut, cuts[-1]))
    cuts.append(keys.numel())
    return [cuts[k + 1] - cuts[k] for k in range(world)]


def _slice_sizes(counts: List[int], rank: int, total: int) -> List[int]:
    """How many of this rank's keys (sorted over the ranks) belong to each rank's exact slice."""
    world = len(counts)
    start = sum(counts[:rank])
    end = start + counts[rank]
    limits = [k * (total // world) + min(k, total % world) for k in range(world + 1)]
    return [max(0, min(end, limits[k + 1]) - max(start, limits[k])) for k in range(world)]


@torch.no_grad()
def solution(local_shard: torch.Tensor, group: Optional[dist.ProcessGroup] = None) -> torch.Tensor:
    keys = torch.sort(local_shard).values
    counts = _counts(keys.numel(), keys.device, group)
    total = sum(counts)
    if total == 0:
        return keys
    bucket = _exchange(keys, _bucket_sizes(keys, counts, group), group)
    bucket = torch.sort(bucket).values
    held = _counts(bucket.numel(), bucket.device, group)
    return _exchange(bucket, _slice_sizes(held, dist.get_rank(group), total), group)
