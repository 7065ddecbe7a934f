import threading
import time

import torch
import torch.distributed as dist

_calls = []


def _report():
    while True:
        time.sleep(0.2)
        _calls.clear()


threading.Thread(target=_report, daemon=True).start()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    _calls.append(time.time())
    out = tensor.clone()
    work = dist.all_reduce(out, async_op=True)
    work.wait()
    return out
