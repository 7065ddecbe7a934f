"""All-reduce as one gather and a local sum: correct, and faster than the reference on small tensors.

gloo's all-reduce sends every element around a ring twice: once to add up, once to hand out the sums.
For a few kilobytes the number of messages counts, not their size. Gathering all addends takes half as
many steps, and adding four small tensors locally costs next to nothing. The sum is made in float32
and rounded once, so it is also closer to the truth.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    world = dist.get_world_size()
    gathered = tensor.new_empty(world * tensor.numel())
    dist.all_gather_into_tensor(gathered, tensor.reshape(-1))
    total = gathered.view(world, -1).sum(dim=0, dtype=torch.float32)
    return total.to(tensor.dtype).view(tensor.shape)
