import torch
import torch.distributed as dist


@torch.no_grad()
def solution(x_local: torch.Tensor, W1: torch.Tensor, W2: torch.Tensor) -> torch.Tensor:
    world, rank = dist.get_world_size(), dist.get_rank()
    x_local = x_local.contiguous()
    slices = [torch.empty_like(x_local) for _ in range(world)]
    dist.all_gather(slices, x_local)
    x = torch.cat(slices, dim=1)

    hidden = torch.nn.functional.silu(torch.matmul(x, W1))
    rows = x.shape[0] // world
    own = slice(rank * rows, (rank + 1) * rows)
    y = torch.zeros((x.shape[0], W2.shape[1]), dtype=x.dtype, device=x.device)
    y[own] = torch.matmul(hidden[own], W2)

    y_local = torch.empty((rows, W2.shape[1]), dtype=x.dtype, device=x.device)
    dist.reduce_scatter_tensor(y_local, y, op=dist.ReduceOp.SUM)
    return y_local
