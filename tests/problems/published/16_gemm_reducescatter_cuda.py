import torch
import torch.distributed as dist


@torch.no_grad()
def solution(A_local, B_local):
    world = dist.get_world_size()
    M = A_local.shape[0]
    partial = (A_local.float() @ B_local.float()).view(world, M // world, -1)  # fp32 end to end
    out = torch.empty(M // world, partial.shape[-1], dtype=torch.float32, device=A_local.device)
    dist.reduce_scatter_tensor(out, partial, op=dist.ReduceOp.SUM)
    return out.to(A_local.dtype)
