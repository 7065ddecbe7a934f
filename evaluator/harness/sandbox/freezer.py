"""Stop and start all processes of a job, fast.

The v2 freezer takes one write to freeze and answers in ``cgroup.events``; v1 is asked until it says FROZEN;
where neither can be written, SIGSTOP is all that is left, which a job can undo and which takes longer: such a
host has the grade ``partial``.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from .cgroup import JobCgroup
from .errors import FreezeFailed
from .processes import state

LIMIT_S = 5.0


class Freezer(Protocol):
    """What a job's freezer offers."""

    def freeze(self) -> float:
        """Stop every process of the job; seconds it took. Idempotent. FreezeFailed after 5 s."""

    def thaw(self) -> float:
        """Let every process go on; seconds it took. Idempotent."""

    def close(self) -> None:
        """Close the descriptors."""


class V2Freezer:
    """``cgroup.freeze`` and ``cgroup.events``, opened ahead."""

    def __init__(self, folder: Path) -> None:
        self._control = os.open(folder / "cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        self._events = os.open(folder / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)

    def freeze(self) -> float:
        """See Freezer. Waits busily (a freeze takes 0.1 ms and the kernel reports it no more than every 10 ms),
        but leaves the core to those who still have to reach their stop.
        """
        start = time.perf_counter()
        os.pwrite(self._control, b"1", 0)
        while b"frozen 1" not in os.pread(self._events, 128, 0):
            if time.perf_counter() - start > LIMIT_S:
                raise FreezeFailed(f"not frozen after {LIMIT_S:g} s")
            os.sched_yield()
        return time.perf_counter() - start

    def thaw(self) -> float:
        """See Freezer. The write itself wakes every process; there is nothing to wait for."""
        start = time.perf_counter()
        os.pwrite(self._control, b"0", 0)
        return time.perf_counter() - start

    def close(self) -> None:
        """See Freezer."""
        os.close(self._control)
        os.close(self._events)


class V1Freezer:
    """``freezer.state``, opened ahead."""

    def __init__(self, folder: Path) -> None:
        self._state = os.open(folder / "freezer.state", os.O_RDWR | os.O_CLOEXEC)

    def _set(self, word: bytes) -> float:
        start = time.perf_counter()
        os.pwrite(self._state, word, 0)
        # Each read makes the kernel look again at who has stopped.
        while os.pread(self._state, 32, 0).strip() != word:
            if time.perf_counter() - start > LIMIT_S:
                raise FreezeFailed(f"not {word.decode()} after {LIMIT_S:g} s")
            os.sched_yield()
        return time.perf_counter() - start

    def freeze(self) -> float:
        """See Freezer."""
        return self._set(b"FROZEN")

    def thaw(self) -> float:
        """See Freezer."""
        return self._set(b"THAWED")

    def close(self) -> None:
        """See Freezer."""
        os.close(self._state)


class SignalFreezer:
    """SIGSTOP to every process that ``pids`` lists, until a whole round finds all of them stopped."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids

    def freeze(self) -> float:
        """See Freezer."""
        start = time.perf_counter()
        while True:
            moving = [pid for pid in self._pids() if state(pid) not in "TtZX"]
            if not moving:
                return time.perf_counter() - start
            if time.perf_counter() - start > LIMIT_S:
                raise FreezeFailed(f"not stopped after {LIMIT_S:g} s: {moving}")
            for pid in moving:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> float:
        """See Freezer."""
        start = time.perf_counter()
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return time.perf_counter() - start

    def close(self) -> None:
        """See Freezer."""


def make_freezer(group: JobCgroup, pids: Callable[[], list[int]]) -> Freezer:
    """The best freezer that the job's groups allow."""
    folder = group.folder("freeze")
    if folder is None:
        return SignalFreezer(pids)
    return V2Freezer(folder) if group.version("freeze") == 2 else V1Freezer(folder)
