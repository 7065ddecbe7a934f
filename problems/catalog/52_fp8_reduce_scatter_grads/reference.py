from typing import Tuple

import torch
import torch.distributed as dist

E4M3_MAX = 448.0


@torch.no_grad()
def solution(flat_grads: torch.Tensor, amax_history: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    world = dist.get_world_size()
    amax = flat_grads.abs().max().to(torch.float32)
    history = torch.roll(amax_history, -1)
    history[-1] = amax.to(history.dtype)

    scale = history.to(torch.float32).max().clamp(min=1e-12) / E4M3_MAX
    codes = (flat_grads.to(torch.float32) / scale).to(torch.float8_e4m3fn)
    restored = (codes.to(torch.float32) * scale).to(flat_grads.dtype)

    shard = torch.empty(flat_grads.numel() // world, dtype=flat_grads.dtype, device=flat_grads.device)
    dist.reduce_scatter_tensor(shard, restored, op=dist.ReduceOp.SUM)
    return shard / world, history
