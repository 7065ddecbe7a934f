from typing import Optional

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    teacher_output: torch.Tensor,
    teacher_temp: float,
    n_masked_patches_tensor: torch.Tensor,
    n_iterations: int = 3,
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    q = torch.exp(teacher_output.to(torch.float32) / teacher_temp).t()
    samples = n_masked_patches_tensor.clone()
    dist.all_reduce(samples, op=dist.ReduceOp.SUM, group=group)
    prototypes = q.shape[0]
    mass = q.sum()
    dist.all_reduce(mass, op=dist.ReduceOp.SUM, group=group)
    q = q / mass
    for _ in range(n_iterations):
        per_prototype = q.sum(dim=1, keepdim=True)
        dist.all_reduce(per_prototype, op=dist.ReduceOp.SUM, group=group)
        q = q / per_prototype
        q = q / prototypes
        q = q / q.sum(dim=0, keepdim=True)
        q = q / samples
    q = q * samples
    return q.t().contiguous()
