"""A warm Python inside a job's sandbox: imports torch once, then forks the ranks of one job.

Usage inside the sandbox: python -I template.py FD, where FD is a SOCK_SEQPACKET socket to the
supervisor. It says {"t": "warm"} when torch is imported, waits for one {"t": "fork"} with the ranks'
descriptors, then reports exits and passes on requests for stack dumps. It holds nothing of value:
all that it says are claims.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_FDS = 16 * 9
"""Descriptors of all ranks: six each, and on timed cards three more."""


def _fork_ranks(control: socket.socket, order: dict[str, Any], descriptors: list[int]) -> dict[int, int]:
    pids = {}
    each = len(descriptors) // order["world_size"]
    for rank in range(order["world_size"]):
        mine = descriptors[rank * each : (rank + 1) * each]
        pid = os.fork()
        if pid == 0:
            control.close()
            for descriptor in descriptors:
                if descriptor not in mine:
                    os.close(descriptor)
            import shim

            shim.run(rank, order, *mine)
        pids[pid] = rank
    for descriptor in descriptors:
        os.close(descriptor)
    return pids


def _report_exits(control: socket.socket, pids: dict[int, int]) -> None:
    while pids:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in pids:
            message = {"t": "exit", "rank": pids.pop(pid), "code": os.waitstatus_to_exitcode(status)}
            control.send(json.dumps(message).encode())


def _serve(control: socket.socket, pids: dict[int, int]) -> None:
    wake, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _report_exits(control, pids)
    while pids:
        sources: list[Any] = [control, wake]
        ready, _, _ = select.select(sources, [], [])
        if wake in ready:
            os.read(wake, 4096)
            _report_exits(control, pids)
        if control in ready:
            if not control.recv(65536):
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                return
            for pid in pids:
                os.kill(pid, signal.SIGUSR2)


def _start_mps() -> None:
    """The job's own MPS daemon, where the target asks for one: ranks on one card then run side by side.

    It belongs to the job, lives in its sandbox and dies with it. Without the tool ranks take turns on the card.
    """
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    tool = shutil.which("nvidia-cuda-mps-control", path=f"{os.environ['PATH']}:/usr/local/nvidia/bin")
    if folder is None or tool is None:
        return
    os.makedirs(folder, exist_ok=True)
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    subprocess.run([tool, "-d"], **quiet, env={**os.environ, "LD_PRELOAD": ""}, check=False, timeout=30)


def _import_extensions(cuda: Any) -> None:
    """Only without cards: with them this import counts devices, after which no forked rank may use CUDA.

    Where torch finds a toolkit it counts them even without cards, and a rank that then asks for one would be told of
    forks instead of the missing driver.
    """
    asked, cuda.is_available = cuda.is_available, lambda: False
    try:
        import extensions  # noqa: F401
    finally:
        cuda.is_available = asked


def main() -> None:
    """Import, wait for the order, fork, report."""
    sys.path.insert(0, HERE)
    control = socket.socket(fileno=int(sys.argv[1]))
    _start_mps()
    import gloo_compat  # noqa: F401  (imported here once, so that ranks need not)
    import torch
    import torch.distributed

    if not os.path.exists("/dev/nvidiactl"):
        _import_extensions(torch.cuda)
    import shim  # noqa: F401

    versions = {"python": sys.version.split()[0], "torch": torch.__version__}
    control.send(json.dumps({"t": "warm", **versions}).encode())
    data, descriptors, _, _ = socket.recv_fds(control, 65536, MOST_FDS)
    if not data:
        return
    _serve(control, _fork_ranks(control, json.loads(data), descriptors))


if __name__ == "__main__":
    main()
