from typing import List, Optional
import torch
import torch.distributed as dist


@torch.no_grad()
def solution(grad_tensors: List[torch.Tensor], max_norm: float, norm_type: float = 2.0,
             fsdp_group: Optional[dist.ProcessGroup] = None) -> torch.Tensor:
    grads = [g for g in grad_tensors if g is not None]
    norms = torch._foreach_norm([g.double() for g in grads], norm_type)
    total = torch.stack(norms).pow(norm_type).sum().float()
    if fsdp_group is not None:
        dist.all_reduce(total, group=fsdp_group)
    total_norm = total ** (1.0 / norm_type)
    clip = torch.clamp(max_norm / total_norm, max=1.0)
    if clip < 1.0:
        torch._foreach_mul_(grads, clip.to(grads[0].dtype))
    return total_norm
