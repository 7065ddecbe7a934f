"""An all-reduce whose first call also measures, on rank 0 alone, how fast memory is copied and matrices multiplied.

Runs as a submission, inside the same sandbox and under the same limits as everybody's. The other ranks wait on the
store, so that no kernel of theirs is on the card meanwhile.
"""

import json
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

_told: list[bool] = []


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """The best of five, after two warm-up rounds."""
    best = float("inf")
    for turn in range(7):
        if device.type == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if turn >= 2:
            best = min(best, time.perf_counter() - begin)
    return best


def _measure(device: torch.device) -> dict[str, float]:
    card = device.type == "cuda"
    nbytes, side, dtype = (1 << 31, 8192, torch.bfloat16) if card else (1 << 26, 1024, torch.float32)
    source = torch.ones(nbytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_s = _seconds(lambda: target.copy_(source), device)
    left = torch.randn(side, side, device=device).to(dtype)
    right = torch.randn(side, side, device=device).to(dtype)
    matrix_s = _seconds(lambda: torch.mm(left, right), device)
    return {"copy_gbs": 2 * nbytes / copy_s / 1e9, "matrix_tflops": 2 * side**3 / matrix_s / 1e12}


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    if not _told:
        _told.append(True)
        store = dist.distributed_c10d._get_default_store()
        if dist.get_rank() == 0:
            sys.stdout.write("RATES " + json.dumps(_measure(tensor.device)) + "\n")
            store.set("measured", "1")
        else:
            store.wait(["measured"])
    out = tensor.clone()
    dist.all_reduce(out)
    return out
