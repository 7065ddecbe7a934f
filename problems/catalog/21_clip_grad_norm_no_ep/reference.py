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
    grads = [grad for grad in grad_tensors if grad is not None]
    device = grads[0].device if grads else torch.device("cpu")
    total = torch.zeros((), dtype=torch.float32, device=device)
    for grad in grads:
        # By rows: torch's whole-tensor norm in fp32 is 4e-4 off on the CPU at a million elements.
        total += (torch.norm(grad.detach().to(torch.float32), p=norm_type, dim=-1) ** norm_type).sum()
    if fsdp_group is not None:
        dist.all_reduce(total, op=dist.ReduceOp.SUM, group=fsdp_group)
    total_norm = total ** (1.0 / norm_type)
    if total_norm > max_norm:
        factor = max_norm / total_norm
        for grad in grads:
            grad.mul_(factor)
    return total_norm
