"""All-gather built from one broadcast per rank: correct, with four collectives in the place of one.

With gloo this is about as quick as the all-gather at the smallest size.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    world, rank = dist.get_world_size(), dist.get_rank()
    out = tensor.new_empty((world, *tensor.shape))
    out[rank].copy_(tensor)
    for source in range(world):
        dist.broadcast(out[source], src=source)
    return out
