"""Who descends from a process, told apart by start time so that a reused pid is no match."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> set[tuple[int, str]]:
    """(pid, start time) of every process below ``pid`` now."""
    found: set[tuple[int, str]] = set()
    todo = [pid]
    while todo:
        parent = todo.pop()
        for task in Path(f"/proc/{parent}/task").glob("*"):
            with suppress(OSError):
                for word in (task / "children").read_text().split():
                    child = int(word)
                    start = start_time(child)
                    if start is not None:
                        found.add((child, start))
                        todo.append(child)
    return found


def start_time(pid: int) -> str | None:
    """Kernel start time of a process; None when it is gone or only waits to be collected."""
    with suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if words[0] in ("Z", "X") else words[19]
    return None


def alive(processes: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """Those that still run."""
    return {(pid, start) for pid, start in processes if start_time(pid) == start}
