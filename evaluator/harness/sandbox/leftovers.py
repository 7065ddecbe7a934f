"""Remove what a dead supervisor left on this host."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from . import names
from .births import born_under
from .cgroup import job_groups, kill_members, members, remove_groups
from .processes import ended, firsts_of_namespaces

_KILL_LIMIT_S = 10.0
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (where the kernel keeps POSIX shared memory)


def _is_ours_and_dead(entry: str, host_id: str) -> bool:
    parsed = names.parse(entry)
    return parsed is not None and parsed[0] == host_id and names.lease_is_dead(*parsed)


def _may_remove(path: Path) -> bool:
    """Whether it is ours to remove: another user's leftovers wait for that user's next worker, or root's."""
    try:
        return os.geteuid() in (0, path.stat(follow_symlinks=False).st_uid)
    except FileNotFoundError:
        return False


def _clean_groups(host_id: str) -> list[str]:
    removed: list[str] = []
    for name, folders in sorted(job_groups(Path("/proc/self/mountinfo").read_text()).items()):
        folders = [folder for folder in folders if _may_remove(folder)]
        if folders and _is_ours_and_dead(name, host_id):
            pids = members(folders)
            removed += [f"process {pid} of {name}" for pid in pids] + [f"cgroup {name}"]
            with ended(firsts_of_namespaces(pids), _KILL_LIMIT_S):
                kill_members(folders, _KILL_LIMIT_S)
            remove_groups(folders)
    return removed


def _clean_processes(leases: Path, host_id: str) -> list[str]:
    """End what no group lists: on a host without writable groups that is every job."""
    removed: list[str] = []
    for entry in sorted(os.listdir(leases)) if leases.is_dir() else ():
        if _is_ours_and_dead(entry, host_id) and _may_remove(leases / entry):
            for born in born_under(leases / entry):
                removed += [f"process {pid} of {born.name}" for pid in born.end(_KILL_LIMIT_S)]
    return removed


def _clean_folder(folder: Path, host_id: str) -> list[str]:
    removed = []
    for entry in sorted(os.listdir(folder)) if folder.is_dir() else ():
        path = folder / entry
        if _is_ours_and_dead(entry, host_id) and _may_remove(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    path.unlink()
            removed.append(str(path))
    return removed


def cleanup_leftovers(host_id: str | None = None) -> list[str]:
    """End the processes and remove the cgroups, folders and shared memory of dead leases of ``host_id``.

    When it returns no process of theirs lives, whether groups could hold them or not.
    Frozen processes are thawed or killed where they are. Living supervisors of the same host are left alone.
    Returns what was removed, in words. To be called when a worker starts. KillFailed when a process stays.
    """
    host = names.clean(host_id) if host_id else names.default_host_id()
    leases = names.run_root() / "leases"
    removed = _clean_groups(host)
    removed += _clean_processes(leases, host)
    removed += _clean_folder(Path(tempfile.gettempdir()), host)
    removed += _clean_folder(_SHARED_MEMORY, host)
    # Last: a lease whose folder is there is looked at again by the next worker.
    removed += _clean_folder(leases, host)
    return removed
