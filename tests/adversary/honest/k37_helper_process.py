import multiprocessing as mp

import torch
import torch.distributed as dist

_ctx = mp.get_context("fork")


def _double(queue):
    while True:
        value = queue.get()
        if value is None:
            return


_queue = _ctx.Queue()
_helper = _ctx.Process(target=_double, args=(_queue,), daemon=True)
_helper.start()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    _queue.put(int(tensor.numel()))
    out = tensor.clone()
    dist.all_reduce(out)
    return out
