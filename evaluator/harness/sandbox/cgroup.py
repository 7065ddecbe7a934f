"""The control groups of one job: limits, membership, usage, and the end of them."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from . import tcpmemory
from .errors import KillFailed, SpawnFailed
from .layout import Layout, read_mounts
from .names import PREFIX
from .rounds import until_none_left
from .spec import SandboxSpec, UsageReport

_CPU_PERIOD_US = 100_000


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _counter(path: Path, key: str) -> int:
    """The figure after ``key`` in a flat keyed file; 0 when there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [key]), 0)


def _write(path: Path, text: str) -> None:
    path.write_text(text)


class JobCgroup:
    """One group per place of the layout, all of the same name."""

    def __init__(self, name: str, layout: Layout) -> None:
        self.name = name
        self._layout = layout

    def folder(self, purpose: str) -> Path | None:
        """The group that serves ``purpose`` (a key of Layout), or None where the host cannot do it."""
        place = self._layout.places.get(purpose)
        return place.base / self.name if place else None

    def version(self, purpose: str) -> int:
        """2, 1, or 0 where the host cannot do it."""
        place = self._layout.places.get(purpose)
        return place.version if place else 0

    def folders(self) -> list[Path]:
        """All groups of the job."""
        return [place.base / self.name for place in self._layout.bases()]

    def create(self, spec: SandboxSpec) -> None:
        """Make the groups and write the limits; on failure nothing stays and SpawnFailed is raised."""
        try:
            for group in self.folders():
                group.mkdir()
            self._limit_memory(spec.memory_bytes)
            if spec.pids_max is not None and (folder := self.folder("pids")):
                _write(folder / "pids.max", str(spec.pids_max))
            self._limit_cpu(spec.cpu_cores)
        except OSError as error:
            self.remove()
            raise SpawnFailed(f"cgroup {self.name}: {error}") from error

    def _limit_memory(self, limit: int | None) -> None:
        folder = self.folder("memory")
        if limit is None or folder is None:
            return
        if self.version("memory") == 2:
            _write(folder / "memory.max", str(limit))
            swap = folder / "memory.swap.max"
        else:
            _write(folder / "memory.limit_in_bytes", str(limit))
            self._limit_sockets(folder)
            swap = folder / "memory.memsw.limit_in_bytes"
        # Absent where the kernel does not count swap.
        if swap.exists():
            _write(swap, "0" if self.version("memory") == 2 else str(limit))

    def _limit_sockets(self, folder: Path) -> None:
        """Memory of TCP and UDP, which v1 counts apart and only when there is a limit.

        Newer kernels may leave the file and refuse the write; `tcpmemory.crowded` finds a full pool all the same.
        """
        limit, share = folder / "memory.kmem.tcp.limit_in_bytes", tcpmemory.share()
        if share is not None and limit.exists():
            with suppress(OSError):
                _write(limit, str(share))

    def _limit_cpu(self, cores: float | None) -> None:
        folder = self.folder("cpu")
        if cores is None or folder is None:
            return
        quota = max(1000, int(cores * _CPU_PERIOD_US))
        if self.version("cpu") == 2:
            _write(folder / "cpu.max", f"{quota} {_CPU_PERIOD_US}")
        else:
            _write(folder / "cpu.cfs_period_us", str(_CPU_PERIOD_US))
            _write(folder / "cpu.cfs_quota_us", str(quota))

    def procs_files(self) -> list[str]:
        """The files a process writes 0 into to become a member of every group."""
        return [str(folder / "cgroup.procs") for folder in self.folders()]

    def pids(self) -> list[int]:
        """Host pids of the members, of all groups together."""
        return members(self.folders())

    def kill(self, limit_s: float) -> None:
        """SIGKILL every member, frozen or not, and wait until none is left; KillFailed as ``kill_members``."""
        self._hurry()
        kill_members(self.folders(), limit_s)

    def _hurry(self) -> None:
        """Give the dying the processor: a group counts as one process, so hundreds would take long on a busy host."""
        folder = self.folder("cpu")
        if folder is not None:
            name, most = ("cpu.weight", "10000") if self.version("cpu") == 2 else ("cpu.shares", "262144")
            with suppress(OSError):
                _write(folder / name, most)

    def oom_kills(self) -> int:
        """How many processes the kernel killed because the job went over its memory limit."""
        folder = self.folder("memory")
        if folder is None:
            return 0
        name = "memory.events" if self.version("memory") == 2 else "memory.oom_control"
        return _counter(folder / name, "oom_kill")

    def usage(self) -> UsageReport:
        """What the job used so far. The memory figure counts file pages too, as the limit does."""
        memory, pids = self.folder("memory"), self.folder("pids")
        peak = None
        if memory:
            v2 = self.version("memory") == 2
            peak = _number(memory / ("memory.peak" if v2 else "memory.max_usage_in_bytes"))
            if peak is None:
                peak = _number(memory / "memory.current")
        return UsageReport(
            max_memory_bytes=peak,
            oom_kills=self.oom_kills(),
            pids_peak_hit=bool(pids and _counter(pids / "pids.events", "max")),
            cpu_seconds=self.cpu_now(),
        )

    def memory_now(self) -> int | None:
        """Bytes that the job holds at the moment; None where no group counts them."""
        folder = self.folder("memory")
        if folder is None:
            return None
        return _number(
            folder / ("memory.current" if self.version("memory") == 2 else "memory.usage_in_bytes")
        )

    def cpu_now(self) -> float | None:
        """Processor seconds that the job has used; None where no group counts them."""
        folder = self.folder("cputime")
        if folder is None:
            return None
        if self.version("cputime") == 2:
            return _counter(folder / "cpu.stat", "usage_usec") / 1e6
        nanoseconds = _number(folder / "cpuacct.usage")
        return None if nanoseconds is None else nanoseconds / 1e9

    def remove(self, limit_s: float = 5.0) -> None:
        """Remove the groups, which must be empty; KillFailed when one stays busy for ``limit_s``."""
        remove_groups(self.folders(), limit_s)


def members(folders: Iterable[Path]) -> list[int]:
    """Host pids of the members of all ``folders`` together."""
    found: set[int] = set()
    for folder in folders:
        with suppress(OSError):
            found.update(int(word) for word in (folder / "cgroup.procs").read_text().split())
    found.discard(0)
    return sorted(found)


def kill_members(folders: Sequence[Path], limit_s: float) -> None:
    """SIGKILL the members of all ``folders``, frozen or not, and wait until none is left.

    Whole groups at once where the kernel offers that, so that none escapes by forking; else round by round.
    KillFailed when for ``limit_s`` none has gone.
    """
    for folder in folders:
        if (folder / "cgroup.kill").exists():
            (folder / "cgroup.kill").write_text("1")
    if left := until_none_left(lambda: _killed_once(folders), limit_s):
        raise KillFailed(f"{folders[0].name}: still there after {limit_s:g} s: {left}")


def _killed_once(folders: Sequence[Path]) -> list[int]:
    """The members, each of which has been sent a SIGKILL."""
    pids = members(folders)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in folders if pids else ():
        # A frozen v1 task takes its SIGKILL only once it has thawed.
        if (folder / "freezer.state").exists():
            (folder / "freezer.state").write_text("THAWED")
    return pids


def remove_groups(folders: Sequence[Path], limit_s: float = 5.0) -> None:
    """rmdir each folder; a busy one (a member is still being reaped) is tried again until ``limit_s``."""
    if left := until_none_left(lambda: [folder for folder in folders if not _removed(folder)], limit_s):
        raise KillFailed(f"still busy after {limit_s:g} s: {', '.join(map(str, left))}")


def _removed(folder: Path) -> bool:
    """Whether a group is gone now; KillFailed when it can't be removed for another reason than being busy."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise KillFailed(f"cannot remove {folder}: {error}") from error
    return True


def job_groups(mountinfo: str) -> dict[str, list[Path]]:
    """All job groups in the hierarchies that ``mountinfo`` names: job name -> its folders.

    The whole trees are searched: an earlier supervisor may have been in another group than this one.
    """
    found: dict[str, list[Path]] = {}
    for mount in read_mounts(mountinfo):
        for parent, children, _ in os.walk(mount.point):
            for child in [name for name in children if name.startswith(f"{PREFIX}.")]:
                children.remove(child)
                found.setdefault(child, []).append(Path(parent, child))
    return found
