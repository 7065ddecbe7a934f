from typing import Tuple

import torch
import torch.distributed as dist

E4M3_MAX = 448.0


@torch.no_grad()
def solution(flat_param_shard: torch.Tensor, amax_history: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    world = dist.get_world_size()
    amax = flat_param_shard.abs().max().to(torch.float32)
    history = torch.roll(amax_history, -1)
    history[-1] = amax.to(history.dtype)

    scale = history.to(torch.float32).max().clamp(min=1e-12) / E4M3_MAX
    codes = (flat_param_shard.to(torch.float32) / scale).to(torch.float8_e4m3fn)
    restored = (codes.to(torch.float32) * scale).to(flat_param_shard.dtype)

    full = restored.new_empty(world * restored.numel())
    dist.all_gather_into_tensor(full, restored)
    return full, history
