from typing import List, Tuple

import torch
import torch.distributed as dist


def _gather_weights(weights: List[torch.Tensor]) -> List[torch.Tensor]:
    """The weights of all ranks, rank by rank; all ranks hold the same number of values in all."""
    world = dist.get_world_size()
    lengths: List[List[int]] = [[] for _ in range(world)]
    dist.all_gather_object(lengths, [w.shape[0] for w in weights])
    flat = torch.cat([w.reshape(-1) for w in weights])
    everyone = [torch.empty_like(flat) for _ in range(world)]
    dist.all_gather(everyone, flat)
    found = []
    for values, cuts in zip(everyone, lengths, strict=True):
        found.extend(piece.reshape(-1, 1) for piece in torch.split(values, cuts))
    return found


@torch.no_grad()
def solution(
    H: List[torch.Tensor],
    error: torch.Tensor,
    weights: List[torch.Tensor],
    P: List[torch.Tensor],
    kalman_lambda: float,
    kalman_nue: float = 0.9987,
) -> Tuple[List[torch.Tensor], List[torch.Tensor], torch.Tensor]:
    decay = torch.tensor(kalman_lambda, dtype=weights[0].dtype, device=weights[0].device)
    error = error.to(weights[0].dtype)
    total = torch.zeros((1, 1), dtype=weights[0].dtype, device=weights[0].device)
    for h, p in zip(H, P, strict=True):
        total = total + decay + h.T @ p @ h
    if dist.is_initialized():
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
    A = 1 / total
    for i, h in enumerate(H):
        K = P[i] @ h
        weights[i] = weights[i] + A * error * K
        P[i] = (P[i] - A * K @ K.T) / decay
    following = kalman_nue * decay + 1 - kalman_nue
    everyone = _gather_weights(weights) if dist.is_initialized() else weights
    return everyone, P, following
