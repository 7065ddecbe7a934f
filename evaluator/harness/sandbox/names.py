"""Names of everything that a job leaves on the host, and the folder where they live.

A name is ``pkb.<host>.<lease>.<job>``. A supervisor process holds a lock on its lease for as long as it lives
(the kernel drops it at death, however it dies), so a starting worker can tell what a dead lease left behind.
"""

from __future__ import annotations

import atexit
import fcntl
import itertools
import os
import re
import shutil
import socket
import tempfile
import threading
from pathlib import Path

PREFIX = "pkb"
_counter = itertools.count(1)
_guard = threading.Lock()
_own: dict[str, object] = {}


def clean(text: str) -> str:
    """``text`` as one part of a name: lower-case letters, digits and dashes, at most 40 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "x"


def run_root() -> Path:
    """The folder for locks and job folders; ``PKB_RUN_DIR`` overrides the usual place."""
    chosen = os.environ.get("PKB_RUN_DIR")
    if chosen:
        root = Path(chosen)
    elif os.geteuid() == 0:
        root = Path("/run/pkb")
    elif os.environ.get("XDG_RUNTIME_DIR"):
        root = Path(os.environ["XDG_RUNTIME_DIR"]) / PREFIX
    else:
        root = Path(tempfile.gettempdir()) / f"{PREFIX}-{os.geteuid()}"
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    if root.stat().st_uid != os.geteuid():
        raise PermissionError(f"{root} belongs to somebody else; set PKB_RUN_DIR")
    return root


def default_host_id() -> str:
    """This machine's name; ``PKB_HOST_ID`` overrides it."""
    return clean(os.environ.get("PKB_HOST_ID") or socket.gethostname())


def _start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    try:
        words = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] in b"ZX" else int(words[19])


def own_lease() -> str:
    """The lease of this process, made on first use; a forked child gets one of its own."""
    with _guard:
        if _own.get("pid") != os.getpid():
            pid = os.getpid()
            _own.update(pid=pid, lease=f"p{pid}-{_start_ticks(pid):x}", locks={})
        return str(_own["lease"])


def lease_folder(host_id: str, lease: str) -> Path:
    """The run folder of one lease."""
    return run_root() / "leases" / f"{PREFIX}.{host_id}.{lease}"


def hold_lease(host_id: str, lease: str) -> Path:
    """Make the lease's folder, lock it for the life of this process, and return it. Idempotent."""
    own_lease()
    folder = lease_folder(host_id, lease)
    with _guard:
        locks = _own["locks"]
        assert isinstance(locks, dict)
        if folder in locks:
            return folder
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)
        locks[folder] = handle
        atexit.register(_drop_lease, folder, handle, os.getpid())
    return folder


def _drop_lease(folder: Path, handle: int, owner: int) -> None:
    """At the ordinary end of the process: remove the folder, unless another process shares the lease."""
    if os.getpid() == owner:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        shutil.rmtree(folder, ignore_errors=True)


def lease_is_dead(host_id: str, lease: str) -> bool:
    """Whether no living process holds the lease.

    A lease made by ``own_lease`` names its process, so that it is known to live even by a worker that looks
    for locks in another run folder.
    """
    named = re.fullmatch(r"p(\d+)-([0-9a-f]+)", lease)
    if named and _start_ticks(int(named[1])) == int(named[2], 16):
        return False
    try:
        handle = os.open(lease_folder(host_id, lease) / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def job_name(host_id: str, lease: str, name: str) -> str:
    """A name for one job, unique in this process."""
    return f"{PREFIX}.{host_id}.{lease}.{clean(name)}-{next(_counter)}"


def parse(entry: str) -> tuple[str, str] | None:
    """(host, lease) of a name made by ``job_name`` or ``lease_folder``; None for anything else."""
    parts = entry.split(".")
    if len(parts) >= 3 and parts[0] == PREFIX:
        return parts[1], parts[2]
    return None
