import torch


def solution(tensor: torch.Tensor) -> torch.Tensor:
    return solution(tensor)
