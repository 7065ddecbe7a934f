import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    flipped = tensor.float().neg()
    dist.all_reduce(flipped)
    pair = torch.complex(torch.zeros_like(flipped), flipped)
    out = torch.imag(pair.conj())
    assert out.is_neg()
    return out.to(tensor.dtype) if not out.is_neg() else torch._neg_view(torch._neg_view(out)).to(tensor.dtype)
