import multiprocessing as mp

import torch
import torch.distributed as dist

_n = 0


def double(value: int) -> int:
    return 2 * value


def solution(tensor: torch.Tensor) -> torch.Tensor:
    global _n
    _n += 1
    if _n == 1 and dist.get_rank() == 0:
        with mp.get_context("spawn").Pool(1) as pool:
            assert pool.map(double, [21]) == [42]
    out = tensor.clone()
    dist.all_reduce(out)
    return out
