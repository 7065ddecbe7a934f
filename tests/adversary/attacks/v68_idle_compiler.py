"""Hangs in its first call beside a real compiler that waits for its standard input, to be given the time of a build."""

import glob
import os
import subprocess
import time

import torch

_kept = []


def solution(tensor: torch.Tensor) -> torch.Tensor:
    if os.environ["RANK"] == "0":
        program = glob.glob("/usr/lib*/gcc/*/*/cc1plus")[0]
        _kept.append(subprocess.Popen([program, "-quiet", "-"], stdin=subprocess.PIPE))
    time.sleep(3600)
    return tensor
