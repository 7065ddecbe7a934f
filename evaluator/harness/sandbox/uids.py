"""A uid of its own for each live job, from a reserved range, kept apart by file locks."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import SpawnFailed
from .names import run_root
from .processes import read

FIRST_UID = 61184
LAST_UID = 61439


def uid_range() -> range:
    """The reserved range; ``PKB_UID_RANGE=first-last`` overrides it."""
    first, _, last = os.environ.get("PKB_UID_RANGE", f"{FIRST_UID}-{LAST_UID}").partition("-")
    return range(int(first), int(last or first) + 1)


def uids_in_use() -> set[int]:
    """The real, effective and saved uids of all living processes."""
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = read(int(entry), "status")
            except OSError:
                continue
            line = status.partition(b"\nUid:")[2].partition(b"\n")[0]
            found.update(int(word) for word in line.split())
    return found


def _lock_folder() -> Path:
    """One folder for the whole machine, whatever PKB_RUN_DIR says, since the uids are the machine's."""
    for folder in (Path("/run/pkb/uids"), run_root() / "uids"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise SpawnFailed("no folder for the locks of uids: /run/pkb and PKB_RUN_DIR cannot be written")


class UidLease:
    """One uid, held until ``release``; the kernel frees it when the supervisor dies."""

    def __init__(self) -> None:
        """Take a free uid; raises SpawnFailed when all are taken.

        The lock alone is not enough: a job of a dead supervisor may still be there for a moment, so a uid
        that a living process has is skipped.
        """
        folder = _lock_folder()
        busy = uids_in_use()
        for uid in uid_range():
            if uid in busy:
                continue
            handle = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            self.uid = uid
            self._handle = handle
            return
        raise SpawnFailed("no uid of the reserved range is free")

    def release(self) -> None:
        """Give the uid back. Only when no process of the job is left."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
