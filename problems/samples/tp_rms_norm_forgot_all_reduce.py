"""RMSNorm over the local slice only: wrong, because the all-reduce of the row sums is missing.

Each rank normalises by the mean square of its own slice. Where all slices have about the same size
this looks nearly right, which is why the judge gives every rank another scale.
"""

import torch


@torch.no_grad()
def solution(
    local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float
) -> torch.Tensor:
    x = local_hidden_states.to(torch.float32)
    mean = x.square().mean(dim=-1, keepdim=True)
    x = x * torch.rsqrt(mean + variance_epsilon)
    return local_weight * x.to(local_hidden_states.dtype)
