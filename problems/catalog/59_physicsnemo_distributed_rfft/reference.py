from typing import Optional, Sequence

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    x: torch.Tensor,
    s: Sequence[int],
    dim: Sequence[int],
    norm: str = "ortho",
    group: Optional[dist.ProcessGroup] = None,
) -> torch.Tensor:
    size = dist.get_world_size(group)
    y = torch.fft.fft(x, n=s[0], dim=dim[0], norm=norm)

    sent = [block.contiguous() for block in torch.chunk(y, size, dim=dim[0])]
    received = [torch.empty_like(block) for block in sent]
    dist.all_to_all(received, sent, group=group)
    y = torch.cat(received, dim=dim[1])

    y = torch.fft.fft(y, n=s[1], dim=dim[1], norm=norm)
    return y.narrow(dim[1], 0, y.shape[dim[1]] // 2 + 1).contiguous()
