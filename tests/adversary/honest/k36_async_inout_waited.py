from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

_pool = ThreadPoolExecutor(2)


@torch.no_grad()
def solution(grad_tensors, max_norm, norm_type=2.0, fsdp_group=None):
    parts = list(_pool.map(lambda g: g.float().norm(p=norm_type) ** norm_type, grad_tensors))
    total = torch.stack(parts).sum()
    dist.all_reduce(total, group=fsdp_group, async_op=True).wait()
    norm = total ** (1.0 / norm_type)
    if norm > max_norm:
        list(_pool.map(lambda g: g.mul_(float(max_norm / norm)), grad_tensors))
    return norm
