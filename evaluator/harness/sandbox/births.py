"""What is known of a job's processes when its supervisor is dead and no cgroup lists them.

Beside its folder each job has a record: which boot and pid namespace its pids belong to, since when, its
outermost process in its own words and, in bubblewrap's, its pid namespace's first process. Nobody writes for
another, so that a supervisor can die at any moment. Without a sandbox, where processes may leave their session,
the job's name is in the environment of all of them.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import KillFailed
from .processes import Seen, firsts_of_namespaces, living, name, read, start_ticks
from .rounds import until_none_left

SUFFIX = ".born"
MARK = "PKB_JOB"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SOON = 600 * _TICKS_PER_S
"""So long after its record was opened a job may start; what starts later has got a number of its again."""

_ENVIRONMENT_BYTES = 64 << 10
"""Read of an environment. Where it lies, and how long it is, a process may say as it likes: all its memory."""


def _here() -> str:
    """This boot and pid namespace: elsewhere the same numbers are other processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


class Birth:
    """The record of one job, while its supervisor lives.

    Into ``path`` the outermost process writes ``outermost`` and its line in ``/proc/self/stat``; ``handle`` is for
    bubblewrap's ``--info-fd``.
    """

    def __init__(self, lease_folder: Path, name: str) -> None:
        self.marks = {MARK: name}
        self.path = lease_folder / f"{name}{SUFFIX}"
        self.handle = -1

    def open(self) -> None:
        """Make the record, before anything is started."""
        self.handle = os.open(
            self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        since = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S)
        os.write(self.handle, f"here {_here()}\nsince {since}\n".encode())

    def outermost(self, pid: int) -> None:
        """Write it for a process that can't; the caller has not yet waited for it."""
        os.write(self.handle, b"outermost " + Path("/proc", str(pid), "stat").read_bytes())

    def close(self) -> None:
        """Close the descriptor; the record stays."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def end(self, limit_s: float) -> None:
        """End the job by its record alone; KillFailed as ``Born.end``. Idempotent."""
        if (born := _read(self.path)) is not None:
            born.end(limit_s)

    def remove(self) -> None:
        """Forget the job. Only when none of its processes is left."""
        self.close()
        self.path.unlink(missing_ok=True)


def _environment(pid: int) -> list[bytes]:
    """Of a process; one empty word when it dies, nothing when it is not ours to read."""
    try:
        with Path("/proc", str(pid), "environ").open("rb", buffering=0) as file:
            return (file.read(_ENVIRONMENT_BYTES) or b"").split(b"\0")
    except OSError:
        # Once it has let go of its memory, Linux 6.16 and later don't open it, and it is root's whoever it was of.
        return [b""] if _holds_no_memory(pid) else []


def _holds_no_memory(pid: int) -> bool:
    with suppress(OSError):
        return set(read(pid, "statm").split()) == {b"0"}
    return False


@dataclass(frozen=True)
class Born:
    """A record as a later process reads it; a pid of 0 was never written."""

    name: str
    since: int
    outermost: int = 0
    outermost_start: int = 0
    first: int = 0

    def _among(self, table: Mapping[int, Seen]) -> set[int]:
        """Those of the job in a table of processes that live now."""
        # True as long as it is there, a zombie too; False once somebody else has its number; None in between.
        still = {self.outermost_start: True, None: None}.get(start_ticks(self.outermost), False)
        found = {pid for pid, seen in table.items() if self._is_one(pid, seen, still)}
        fresh = found
        while fresh:
            fresh = {pid for pid, seen in table.items() if seen.parent in fresh} - found
            found |= fresh
        return found

    def _is_one(self, pid: int, seen: Seen, still: bool | None) -> bool:
        in_session = seen.session == self.outermost > 0 and still is not False
        if in_session and still:
            return True
        if seen.start < self.since:
            return False
        soon = seen.start <= self.since + _SOON
        if soon and pid == self.first and firsts_of_namespaces([pid]):
            return True
        words = _environment(pid)
        # The outermost process has ended. What is left of its session dies, too, and has no environment any more, or
        # is what bubblewrap forked before it could tell.
        if in_session and (words == [b""] or (soon and name(pid) == "bwrap")):
            return True
        return f"{MARK}={self.name}".encode() in words

    def end(self, limit_s: float) -> list[int]:
        """Kill all of them and wait until none lives; which they were. KillFailed when for ``limit_s`` none goes."""
        started: dict[int, int] = {}

        def one_round() -> list[int]:
            # What was one of them stays one, also when nothing of it tells so any more, since it dies.
            table = living()
            pids = {pid for pid, start in started.items() if pid in table and table[pid].start == start}
            pids |= self._among(table)
            started.update((pid, table[pid].start) for pid in pids)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return sorted(pids)

        if left := until_none_left(one_round, limit_s):
            raise KillFailed(f"{self.name}: still there after {limit_s:g} s: {left}")
        return sorted(started)


def _read(path: Path) -> Born | None:
    """The record; None when its pids are of another boot or pid namespace, it was never begun, or it is gone."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    since = re.search(r"since (\d+)\n", text)
    if since is None or f"here {_here()}\n" not in text:
        return None
    # Two write into it, so a line of ours may stand within one of bubblewrap's.
    outermost = re.search(r"outermost (\d+) \(.*\)(?: \S+){19} (\d+) ", text)
    first = re.search(r'"child-pid": (\d+)', text)
    return Born(
        path.name.removesuffix(SUFFIX),
        int(since[1]),
        int(outermost[1]) if outermost else 0,
        int(outermost[2]) if outermost else 0,
        int(first[1]) if first else 0,
    )


def born_under(lease_folder: Path) -> Iterator[Born]:
    """The jobs that were started under a lease and not ended."""
    for path in sorted(lease_folder.glob(f"*{SUFFIX}")):
        if (born := _read(path)) is not None:
            yield born
