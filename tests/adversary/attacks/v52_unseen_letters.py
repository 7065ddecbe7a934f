"""Adds up. ‮ ⁦nothing to see⁩ ​‍﻿"""
import torch
import torch.distributed as dist

# ‮ } ⁦if done⁩ ⁦ begin
print("up ‮ down ⁦ in ​‎ out ؜", flush=True)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
