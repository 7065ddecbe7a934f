"""Raises an exception: a runtime error with the line that caused it.

The file takes for granted that there are at least four gradient tensors; the problem passes three.
Sizes belong to the arguments: read them there.
"""

from typing import List, Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    grad_tensors: List[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    fsdp_group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float32, device=grad_tensors[0].device)
    for index in range(4):
        total += grad_tensors[index].float().norm(p=norm_type) ** norm_type
    dist.all_reduce(total, group=fsdp_group)
    return total ** (1.0 / norm_type)
