"""All-reduce in four pieces, one after another: correct, and slower than the reference.

Each piece is a collective of its own, so the ranks meet four times. On small messages the meeting is
nearly all of the time: put more data into fewer collectives instead. Pieces pay off only where they
overlap with other work.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    for piece in out.chunk(4):
        dist.all_reduce(piece)
    return out
