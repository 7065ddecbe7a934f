"""Dies by a signal after writing a fault handler's stack whose line number has 5000 digits."""

import os
import signal
import sys

import torch


def solution(tensor: torch.Tensor) -> torch.Tensor:
    if os.environ["RANK"] == "0":
        head = "Current thread 0x0000 (most recent call first):"
        sys.stderr.write(f'{head}\n  File "/job/solution.py", line {"9" * 5000} in solution\n')
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return tensor
