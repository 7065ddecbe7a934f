import os

import torch

if os.environ["RANK"] == "3":
    os.abort()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
