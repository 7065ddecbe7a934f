import subprocess
import sys

import torch
import torch.distributed as dist

CORES = int(subprocess.run([sys.executable, "-c", "import os; print(os.cpu_count())"], capture_output=True, text=True).stdout)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
