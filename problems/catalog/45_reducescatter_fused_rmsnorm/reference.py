import torch
import torch.distributed as dist


@torch.no_grad()
def solution(rs_input_1d: torch.Tensor, gamma: torch.Tensor, eps: float) -> torch.Tensor:
    world = dist.get_world_size()
    chunk = rs_input_1d.numel() // world
    hidden = gamma.numel()
    assert chunk % hidden == 0, "a rank's part must consist of whole rows"

    part = torch.empty(chunk, dtype=rs_input_1d.dtype, device=rs_input_1d.device)
    dist.reduce_scatter_tensor(part, rs_input_1d.contiguous(), op=dist.ReduceOp.SUM)
    part /= world

    x = part.view(chunk // hidden, hidden).float()
    rms = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (x * rms * gamma.float()).to(rs_input_1d.dtype)
