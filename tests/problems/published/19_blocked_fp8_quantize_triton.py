from typing import Tuple
import torch
import torch.distributed as dist


@torch.no_grad()
def solution(local_tensor: torch.Tensor, block_size: int = 128) -> Tuple[torch.Tensor, torch.Tensor]:
    M, N = local_tensor.shape
    x = local_tensor.float().view(M, N // block_size, block_size)
    s = x.abs().amax(-1) * (1.0 / 448.0)
    inv = torch.where(s > 0, 1.0 / s, torch.ones_like(s))
    y = (x * inv.unsqueeze(-1)).clamp(-448, 448).to(torch.float8_e4m3fn).view(M, N)
    if not dist.is_initialized():
        return y, s
    W = dist.get_world_size()
    ys = torch.empty(W * M, N, dtype=torch.float8_e4m3fn, device=y.device)
    ss = torch.empty(W * M, N // block_size, dtype=torch.float32, device=y.device)
    dist.all_gather_into_tensor(ys, y)
    dist.all_gather_into_tensor(ss, s)
    return ys, ss
