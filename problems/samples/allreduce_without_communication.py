"""The all-reduce is missing: wrong on every rank.

Each rank returns a copy of its own addend. Shape and dtype are right, so a check on one rank with one
constant input could miss it; random values that differ from rank to rank can't.
"""

import torch


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()
