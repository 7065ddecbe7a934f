"""Run on four ranks in place of a solution: forms of collectives that NCCL takes and gloo by itself refuses.

Every function returns what it got; the test knows what that must be.
"""

import torch
import torch.distributed as dist

MINE = torch.arange(8.0)


def _rows(rank, world):
    """Values of this rank: 0..7 plus ten times its number."""
    return MINE + 10 * rank


def stacked_gather(rank, world):
    out = torch.empty(world, 8)
    dist.all_gather_into_tensor(out, _rows(rank, world))
    return out


def stacked_gather_by_its_new_name(rank, world):
    out = torch.empty(world, 8)
    dist.all_gather_single(out, _rows(rank, world))
    return out


def gather_of_counts(rank, world):
    out = torch.zeros(world, dtype=torch.int64)
    dist.all_gather_into_tensor(out, torch.tensor(rank))
    return out


def reduce_scatter_of_a_stack(rank, world):
    out = torch.empty(2)
    dist.reduce_scatter_tensor(out, _rows(rank, world).view(world, 2))
    return out


def reduce_scatter_into_a_row(rank, world):
    out = torch.empty(1, 2)
    dist.reduce_scatter_tensor(out, _rows(rank, world), op=dist.ReduceOp.AVG)
    return out


def uneven_gather(rank, world):
    parts = [torch.empty(peer + 1) for peer in range(world)]
    work = dist.all_gather(parts, torch.full((rank + 1,), float(rank)), async_op=True)
    work.get_future().wait()
    return torch.cat(parts)


def uneven_exchange(rank, world):
    parts = [torch.empty(peer + 1) for peer in range(world)]
    sent = [torch.full((rank + 1,), float(10 * rank + peer)) for peer in range(world)]
    dist.all_to_all(parts, sent, async_op=True).get_future().wait()
    return torch.cat(parts)


def batch_with_itself(rank, world):
    out = torch.empty(world, 8)
    ops = []
    for peer in range(world):
        ops.append(dist.P2POp(dist.isend, _rows(rank, world), peer))
        ops.append(dist.P2POp(dist.irecv, out[peer], peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return out


def float8_codes(rank, world):
    codes = _rows(rank, world).to(torch.float8_e4m3fn)
    everywhere = torch.empty(world * 8, dtype=codes.dtype)
    dist.all_gather_into_tensor(everywhere, codes)
    exchanged = torch.empty_like(codes)
    dist.all_to_all_single(exchanged, codes)
    first = codes.clone()
    dist.broadcast(first, src=0)
    listed = [torch.empty_like(codes) for _ in range(world)]
    dist.all_gather(listed, codes)
    return torch.cat([everywhere.float(), exchanged.float(), first.float(), torch.cat(listed).float()])


def coalesced_for_a_device(rank, world):
    one, two = _rows(rank, world), torch.empty(world, 8)
    with dist._coalescing_manager(device=one.device, async_ops=True) as manager:
        dist.all_reduce(one)
        dist.all_gather_into_tensor(two, _rows(rank, world))
    manager.wait()
    return torch.cat([one, two.view(-1)])


def group_by_the_name_nccl(rank, world):
    group = dist.new_group(list(range(world)), backend="nccl")
    total = _rows(rank, world)
    dist.all_reduce(total, group=group)
    return total


FORMS = [value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")]


def solution(tensor):
    rank, world = dist.get_rank(), dist.get_world_size()
    return {form.__name__: form(rank, world) for form in FORMS}
