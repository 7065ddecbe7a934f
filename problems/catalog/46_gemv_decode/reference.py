import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    hidden_states: torch.Tensor, weight_shard: torch.Tensor, bias_shard: torch.Tensor
) -> torch.Tensor:
    local = (torch.matmul(hidden_states, weight_shard.t()) + bias_shard).contiguous()
    parts = [torch.empty_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, local)
    return torch.cat(parts, dim=1).contiguous()
