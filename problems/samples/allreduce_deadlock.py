"""A collective that not every rank joins: the others wait for ever.

Rank 0 thinks that it is done because it holds the data already. The all-reduce of the other ranks
needs all four, so the judge ends the job at its deadline and shows where each rank waited.
Collectives belong outside of conditions that can differ between ranks.
"""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    if dist.get_rank() != 0:
        dist.all_reduce(out)
    return out
