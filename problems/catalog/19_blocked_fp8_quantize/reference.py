from typing import Tuple

import torch
import torch.distributed as dist

E4M3_MAX = 448.0


def _quantize(x: torch.Tensor, block_size: int) -> Tuple[torch.Tensor, torch.Tensor]:
    blocks = x.to(torch.float32).unflatten(-1, (-1, block_size))
    s = blocks.abs().amax(dim=-1) / E4M3_MAX
    divisor = torch.where(s == 0, torch.ones_like(s), s)
    scaled = (blocks / divisor.unsqueeze(-1)).clamp(-E4M3_MAX, E4M3_MAX)
    return scaled.flatten(-2).to(torch.float8_e4m3fn), s


@torch.no_grad()
def solution(local_tensor: torch.Tensor, block_size: int = 128) -> Tuple[torch.Tensor, torch.Tensor]:
    assert local_tensor.is_contiguous()
    assert local_tensor.shape[-1] % block_size == 0
    y, s = _quantize(local_tensor, block_size)
    world = dist.get_world_size()

    codes = y.view(torch.uint8)
    all_codes = [torch.empty_like(codes) for _ in range(world)]
    dist.all_gather(all_codes, codes)
    all_scales = [torch.empty_like(s) for _ in range(world)]
    dist.all_gather(all_scales, s)
    return torch.cat(all_codes, dim=0).view(torch.float8_e4m3fn), torch.cat(all_scales, dim=0)
