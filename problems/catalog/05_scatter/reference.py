import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    if dist.get_rank() == src:
        slices = [part.squeeze(0).contiguous() for part in tensor.chunk(dist.get_world_size(), dim=0)]
        out = torch.empty_like(slices[0])
        dist.scatter(out, slices, src=src)
    else:
        out = tensor.clone()
        dist.scatter(out, None, src=src)
    return out
