import torch
import torch.distributed as dist


def _dequantize(y: torch.Tensor, s: torch.Tensor, block_size: int) -> torch.Tensor:
    assert y.numel() % block_size == 0
    blocks = y.contiguous().view(-1, block_size).to(torch.float32)
    return (blocks * s.reshape(-1, 1).to(torch.float32)).view(y.shape)


@torch.no_grad()
def solution(local_y: torch.Tensor, local_s: torch.Tensor, block_size: int = 128) -> torch.Tensor:
    x = _dequantize(local_y, local_s, block_size)
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    return out
