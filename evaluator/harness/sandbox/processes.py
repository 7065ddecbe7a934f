"""Processes of a job where no cgroup lists them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .errors import KillFailed


def _parents() -> dict[int, int]:
    """pid -> parent pid of every living process; zombies are left out."""
    table: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] not in "ZX":
                table[int(entry)] = int(words[1])
    return table


def _children(pid: int) -> list[int]:
    """The children of all threads of a process; FileNotFoundError where the kernel does not list them."""
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def state(pid: int) -> str:
    """The state letter of a process; ``X`` when it is gone."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _descendants_by_scan(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for child, parent in _parents().items():
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def descendants(pid: int) -> list[int]:
    """``pid`` and all below it that live, ``pid`` first.

    Complete for a sandbox: an orphan in a pid namespace becomes a child of the namespace's first process.
    """
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return _descendants_by_scan(pid)
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        with suppress(OSError):
            waiting += _children(found[-1])
    return [pid, *(child for child in found[1:] if state(child) not in "ZX")]


def wait_until_gone(pids: Iterable[int], deadline: float) -> None:
    """Wait until none of ``pids`` lives, killing what stays; KillFailed at ``deadline`` (monotonic)."""
    left = set(pids)
    pause = 0.0005
    while left := left & _parents().keys():
        if time.monotonic() > deadline:
            raise KillFailed(f"still there: {sorted(left)}")
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def resident_peak(pids: Iterable[int]) -> int:
    """Bytes: the most that each living process held in memory at once, summed. Shared pages count for each."""
    total = 0
    for pid in pids:
        try:
            lines = Path("/proc", str(pid), "status").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return total
