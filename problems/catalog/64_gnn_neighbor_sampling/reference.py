from typing import List, Optional, Tuple

import torch
import torch.distributed as dist


def _exchange(x: torch.Tensor, send: List[int], receive: List[int], group: Optional[dist.ProcessGroup]):
    out = torch.empty(sum(receive), dtype=x.dtype, device=x.device)
    dist.all_to_all_single(out, x, receive, send, group=group)
    return out


def _exchange_counts(send: torch.Tensor, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    receive = torch.empty_like(send)
    dist.all_to_all_single(receive, send, group=group)
    return receive


def _segments(starts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """starts[0], starts[0]+1, … (counts[0] of them), starts[1], …"""
    before = counts.cumsum(0) - counts
    ramp = torch.arange(int(counts.sum()), dtype=torch.int64, device=counts.device)
    return ramp + (starts - before).repeat_interleave(counts)


def _answer(
    asked: torch.Tensor, fanout: int, row_ptr: torch.Tensor, col: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The first `fanout` neighbours of each asked node: how many, which, and their edges."""
    starts = row_ptr[asked]
    counts = row_ptr[asked + 1] - starts
    if fanout >= 0:
        counts = counts.clamp(max=fanout)
    edges = _segments(starts, counts)
    return counts, col[edges], edges


def _sample_hop(
    frontier: torch.Tensor,
    fanout: int,
    row_ptr: torch.Tensor,
    col: torch.Tensor,
    node_to_rank: torch.Tensor,
    group: Optional[dist.ProcessGroup],
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Neighbours, the frontier node of each, and edges, in the order of the frontier."""
    owner = node_to_rank[frontier]
    order = torch.argsort(owner, stable=True)
    requests = torch.bincount(owner, minlength=dist.get_world_size(group))
    served = _exchange_counts(requests, group)
    send, receive = requests.tolist(), served.tolist()
    asked = _exchange(frontier[order], send, receive, group)
    counts, nodes, edges = _answer(asked, fanout, row_ptr, col)
    replies = torch.stack([piece.sum() for piece in torch.split(counts, receive)])
    back, arriving = replies.tolist(), _exchange_counts(replies, group).tolist()
    counts = _exchange(counts, receive, send, group)
    nodes = _exchange(nodes, back, arriving, group)
    edges = _exchange(edges, back, arriving, group)
    starts, per_node = torch.empty_like(counts), torch.empty_like(counts)
    starts[order], per_node[order] = counts.cumsum(0) - counts, counts
    places = _segments(starts, per_node)
    return nodes[places], frontier.repeat_interleave(per_node), edges[places]


def _first_occurrences(x: torch.Tensor) -> torch.Tensor:
    values, inverse = torch.unique(x, return_inverse=True)
    first = torch.full_like(values, x.numel())
    first.scatter_reduce_(0, inverse, torch.arange(x.numel(), device=x.device), "amin")
    return x[first.sort().values]


def _places(nodes: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Index in `nodes` of each element of `wanted`."""
    ordered, order = nodes.sort()
    return order[torch.searchsorted(ordered, wanted)]


@torch.no_grad()
def solution(
    seed_nodes: torch.Tensor,
    fanouts: List[int],
    local_adj_row_ptr: torch.Tensor,
    local_adj_col: torch.Tensor,
    node_to_rank: torch.Tensor,
    group: Optional[dist.ProcessGroup] = None,
    replace: bool = False,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    node = frontier = seed_nodes
    hops = []
    for fanout in fanouts:
        hop = _sample_hop(frontier, fanout, local_adj_row_ptr, local_adj_col, node_to_rank, group)
        hops.append(hop)
        known = node.numel()
        node = _first_occurrences(torch.cat([node, hop[0]]))
        frontier = node[known:]
    neighbours, targets, edge = (torch.cat(parts) for parts in zip(*hops, strict=True))
    return node, _places(node, neighbours), _places(node, targets), edge
