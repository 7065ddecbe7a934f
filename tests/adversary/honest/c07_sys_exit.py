import sys

import torch


def solution(tensor: torch.Tensor) -> torch.Tensor:
    sys.exit("no kernel for this shape")
