from typing import Tuple

import torch
import torch.distributed as dist


def _reduced(value: torch.Tensor, op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> torch.Tensor:
    dist.all_reduce(value, op=op)
    return value


def _metrics(
    q: torch.Tensor, d: torch.Tensor, ce: torch.Tensor, valid: torch.Tensor, n: torch.Tensor
) -> torch.Tensor:
    zero = torch.zeros((), dtype=q.dtype, device=q.device)
    infinity = torch.full((), float("inf"), dtype=q.dtype, device=q.device)
    mean_ratio = _reduced(torch.where(valid, q, zero).sum()) / n
    least = _reduced(torch.where(valid, q, infinity).min(), dist.ReduceOp.MIN)
    most = _reduced(torch.where(valid, q, -infinity).max(), dist.ReduceOp.MAX)
    divergence = _reduced(torch.where(valid, q - d - 1.0, zero).sum()) / n
    entropy = _reduced(torch.where(valid, ce, zero).sum()) / n
    return torch.stack([item.float() for item in (mean_ratio, least, most, divergence, entropy)])


@torch.no_grad()
def solution(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    ignore_index: int = -100,
) -> Tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, torch.Tensor]:
    targets, old, advantage = labels.reshape(-1), old_logprobs.reshape(-1), advantages.reshape(-1)
    logits = hidden_states.reshape(-1, hidden_states.shape[-1]) @ weight.t()
    ce = torch.nn.functional.cross_entropy(logits, targets, ignore_index=ignore_index, reduction="none")
    lp = -ce
    valid = targets != ignore_index
    n = _reduced(valid.sum().to(torch.float32)).clamp(min=1.0)

    zero = torch.zeros((), dtype=lp.dtype, device=lp.device)
    d = torch.where(valid, lp - old, zero).clamp(-20.0, 20.0)
    q = torch.exp(d)
    pg = torch.where(valid, -(q * advantage), zero)
    true_pg = _reduced(pg.sum()) / n
    surrogate = (torch.where(valid, q * advantage, zero) * ce).sum() / n
    loss = true_pg + surrogate - surrogate

    metrics = _metrics(q, d, ce, valid, n)
    return loss, None, lp.reshape(labels.shape), pg.reshape(labels.shape), metrics
