from typing import List, Optional

import torch
import torch.distributed as dist


def _present(tensors: List[torch.Tensor]) -> List[torch.Tensor]:
    return [tensor for tensor in tensors if tensor is not None]


def _powers(grads: List[torch.Tensor], p: float, device: torch.device) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float32, device=device)
    for grad in grads:
        # By rows: torch's whole-tensor norm in fp32 is 4e-4 off on the CPU at a million elements.
        total += (torch.norm(grad.detach().to(torch.float32), p=p, dim=-1) ** p).sum()
    return total


@torch.no_grad()
def solution(
    non_ep_grad_tensors: List[torch.Tensor],
    ep_grad_tensors: List[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    ep_size: int = 1,
    fsdp_group: Optional[dist.ProcessGroup] = None,
    ep_fsdp_group: Optional[dist.ProcessGroup] = None,
    ep_group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    dense, expert = _present(non_ep_grad_tensors), _present(ep_grad_tensors)
    device = (dense + expert)[0].device if dense or expert else torch.device("cpu")
    if ep_size > 1:
        for grad in expert:
            grad.mul_(1.0 / ep_size)

    dense_total = _powers(dense, norm_type, device)
    if fsdp_group is not None:
        dist.all_reduce(dense_total, op=dist.ReduceOp.SUM, group=fsdp_group)
    expert_total = _powers(expert, norm_type, device)
    for group in (ep_fsdp_group, ep_group):
        if group is not None:
            dist.all_reduce(expert_total, op=dist.ReduceOp.SUM, group=group)

    total_norm = (dense_total + expert_total) ** (1.0 / norm_type)
    if total_norm > max_norm:
        factor = max_norm / total_norm
        for grad in dense + expert:
            grad.mul_(factor)
    return total_norm
