import torch
import torch.distributed as dist


def _quantised(flat: torch.Tensor, block_size: int) -> torch.Tensor:
    """fp32 values of `flat` after block-wise int8 quantisation and back."""
    count = flat.numel()
    missing = -count % block_size
    padded = torch.cat([flat.float(), torch.zeros(missing, dtype=torch.float32, device=flat.device)])
    blocks = padded.view(-1, block_size)
    scale = blocks.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127.0
    q = torch.round(blocks / scale).clamp(-127, 127).to(torch.int8)
    return (q.float() * scale).view(-1)[:count]


@torch.no_grad()
def solution(flat_grad: torch.Tensor, block_size: int) -> torch.Tensor:
    assert block_size >= 1
    if flat_grad.numel() == 0:
        return flat_grad
    total = _quantised(flat_grad.reshape(-1), block_size)
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    total /= dist.get_world_size()
    return total.to(flat_grad.dtype).view(flat_grad.shape)
