import torch
import torch.distributed as dist


@torch.no_grad()
def solution(
    grad_shard: torch.Tensor,
    master_shard: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> torch.Tensor:
    assert step >= 1
    assert master_shard.numel() > 0
    p, m, v = master_shard.clone(), exp_avg.clone(), exp_avg_sq.clone()
    # Every line rounds to the tensors' dtype.
    m.mul_(beta1).add_(grad_shard, alpha=1.0 - beta1)
    v.mul_(beta2).addcmul_(grad_shard, grad_shard, value=1.0 - beta2)
    m_hat = m / (1.0 - beta1**step)
    v_hat = v / (1.0 - beta2**step)
    update = m_hat / v_hat.sqrt().add_(eps)
    p.add_(update.mul_(-lr))

    gathered = torch.empty(dist.get_world_size() * p.numel(), dtype=p.dtype, device=p.device)
    dist.all_gather_into_tensor(gathered, p)
    return gathered
