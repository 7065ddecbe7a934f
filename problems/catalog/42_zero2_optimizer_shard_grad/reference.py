from typing import List, Tuple

import torch
import torch.distributed as dist


def _split(flat: torch.Tensor, shapes: List[torch.Size]) -> List[torch.Tensor]:
    parts = flat.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _flat_gradient(X: torch.Tensor, y: torch.Tensor, params: List[torch.Tensor]) -> torch.Tensor:
    """Gradient of the mean squared error of the two-layer MLP on the local rows."""
    leaves = [param.detach().clone().requires_grad_(True) for param in params]
    W1, b1, W2, b2 = leaves
    hidden = torch.relu(torch.matmul(X, W1.t()) + b1)
    out = torch.matmul(hidden, W2.t()) + b2
    loss = ((out - y) ** 2).mean()
    grads = torch.autograd.grad(loss, leaves)
    return torch.cat([grad.reshape(-1) for grad in grads])


@torch.no_grad()
def _adam(
    p: torch.Tensor,
    g: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> None:
    """One step in place; every line rounds to the tensors' dtype."""
    m.mul_(beta1).add_(g, alpha=1.0 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    m_hat = m / (1.0 - beta1**step)
    v_hat = v / (1.0 - beta2**step)
    update = m_hat / v_hat.sqrt().add_(eps)
    p.add_(update.mul_(-lr))


def solution(
    X_local: torch.Tensor,
    y_local: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    exp_avg_part: torch.Tensor,
    exp_avg_sq_part: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
) -> Tuple[torch.Tensor, ...]:
    assert step >= 1
    world, rank = dist.get_world_size(), dist.get_rank()
    shapes = [part.shape for part in (W1, b1, W2, b2)]
    params = torch.cat([part.detach().reshape(-1) for part in (W1, b1, W2, b2)])
    dist.broadcast(params, src=0)
    count = exp_avg_part.numel()
    assert params.numel() == world * count
    own = slice(rank * count, (rank + 1) * count)

    whole = _flat_gradient(X_local, y_local, _split(params, shapes))
    grad = torch.empty(count, dtype=whole.dtype, device=whole.device)
    dist.reduce_scatter_tensor(grad, whole, op=dist.ReduceOp.SUM)
    grad /= world

    shard, first, second = params[own].clone(), exp_avg_part.clone(), exp_avg_sq_part.clone()
    _adam(shard, grad, first, second, lr, beta1, beta2, eps, step)

    updated = torch.empty_like(params)
    dist.all_gather_into_tensor(updated, shard)
    return (*_split(updated, shapes), first, second)
