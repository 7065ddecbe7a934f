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


def descendants(pid: int) -> list[int]:
    """``pid`` and all below it, ``pid`` first.

    Complete for a sandbox: an orphan in a pid namespace becomes a child of the namespace's first process.
    """
    children: dict[int, list[int]] = {}
    for child, parent in _parents().items():
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


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
