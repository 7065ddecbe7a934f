import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float
) -> torch.Tensor:
    dtype = local_hidden_states.dtype
    x = local_hidden_states.to(torch.float32)
    squares = x.pow(2).sum(dim=-1, keepdim=True)
    dist.all_reduce(squares, op=dist.ReduceOp.SUM)
    variance = squares / (x.shape[-1] * dist.get_world_size())
    x = x * torch.rsqrt(variance + variance_epsilon)
    return local_weight * x.to(dtype)
