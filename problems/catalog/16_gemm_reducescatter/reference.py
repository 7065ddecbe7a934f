import torch
import torch.distributed as dist


@torch.no_grad()
def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    partial = torch.matmul(A_local, B_local).contiguous()
    rows = partial.shape[0] // dist.get_world_size()
    C_local = torch.empty((rows, partial.shape[1]), dtype=partial.dtype, device=partial.device)
    dist.reduce_scatter_tensor(C_local, partial, op=dist.ReduceOp.SUM)
    return C_local
