import torch


def solution(tensor: torch.Tensor) -> torch.Tensor:
    raise ValueError("bad \x1b[31mvalue\x1b[0m \x00 \ud800 \u202e " + "x" * 50000)
