"""Processes of a job where no cgroup lists them."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .errors import KillFailed
from .rounds import until_none_left


class Seen(NamedTuple):
    """What the kernel says of a process for as long as it is there."""

    parent: int
    session: int
    start: int
    """Clock ticks since boot."""


def read(pid: int, file: str) -> bytes:
    """A file of ``/proc`` about a process, as bytes: in it stands its name, which it may make anything but text."""
    return Path("/proc", str(pid), file).read_bytes()


def _stat(pid: int) -> list[bytes]:
    """What ``/proc/PID/stat`` says after the name, the state first."""
    return read(pid, "stat").rpartition(b")")[2].split()


def living() -> dict[int, Seen]:
    """Every living process by pid; zombies are left out."""
    table: dict[int, Seen] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = _stat(int(entry))
            except OSError:
                continue
            if words[0] not in b"ZX":
                table[int(entry)] = Seen(int(words[1]), int(words[3]), int(words[19]))
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
        return _stat(pid)[0].decode()
    except OSError:
        return "X"


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot, be it a zombie; None when there is none."""
    try:
        return int(_stat(pid)[19])
    except OSError:
        return None


def busy_ticks(pid: int) -> int | None:
    """Clock ticks that a process has computed so far; None when it is gone."""
    try:
        words = _stat(pid)
    except OSError:
        return None
    return int(words[11]) + int(words[12])


def name(pid: int) -> str:
    """The name of a process; empty when it is gone."""
    try:
        return read(pid, "comm").decode(errors="replace").strip()
    except OSError:
        return ""


def _descendants_by_scan(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for child, seen in living().items():
        children.setdefault(seen.parent, []).append(child)
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


def firsts_of_namespaces(pids: Iterable[int]) -> list[int]:
    """Those of ``pids`` that are the first process of a pid namespace below ours: the last of it to end."""
    found = []
    for pid in pids:
        with suppress(OSError):
            line = read(pid, "status").partition(b"\nNSpid:")[2].partition(b"\n")[0]
            if line.split()[1:] and line.split()[-1] == b"1":
                found.append(pid)
    return found


def wait_until_gone(pids: Iterable[int], limit_s: float) -> None:
    """Wait until none of ``pids`` lives, killing what stays; KillFailed when for ``limit_s`` none has gone."""
    known = set(pids)

    def one_round() -> list[int]:
        known.intersection_update(living())
        for pid in known:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return sorted(known)

    if left := until_none_left(one_round, limit_s):
        raise KillFailed(f"still there: {left}")


@contextmanager
def ended(pids: Iterable[int], limit_s: float) -> Iterator[None]:
    """Processes that live now and must be no more when the block is left; KillFailed after ``limit_s``.

    A process leaves its control groups before it has ended, so an empty group does not say that.
    """
    handles: list[int] = []
    try:
        for pid in pids:
            with suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
        yield
        for handle in handles:
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            if not waiting.poll(limit_s * 1000):
                raise KillFailed(f"a process has not ended after {limit_s:g} s")
    finally:
        for handle in handles:
            os.close(handle)


def resident_peak(pids: Iterable[int]) -> int:
    """Bytes: the most that each living process held in memory at once, summed. Shared pages count for each."""
    total = 0
    for pid in pids:
        try:
            lines = read(pid, "status").split(b"\n")
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith(b"VmHWM:"))
    return total
