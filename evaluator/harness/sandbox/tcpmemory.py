"""The kernel's memory for TCP: one pool for the whole machine, whatever network namespaces there are.

Beyond the second of the marks in ``tcp_mem`` the kernel makes every connection slow, until less than the first is
held; beyond the third hardly anything is sent. Who hoards unread bytes there slows the other job's ranks, which
exchange by TCP, though it is frozen itself. Groups of v1 do not count that memory unless they are told to; those of
v2 count it as the job's memory, of which there may be more than the pool has.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_MARKS = Path("/proc/sys/net/ipv4/tcp_mem")
_HELD = Path("/proc/net/sockstat")
_JOBS = 2
"""Two jobs live side by side."""


def _first_mark() -> int | None:
    """Pages; None where the kernel does not tell."""
    try:
        return int(_MARKS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def share() -> int | None:
    """Bytes that a job may hold so that all jobs together stay below the first mark; None where none is known."""
    mark = _first_mark()
    return None if mark is None else mark * os.sysconf("SC_PAGE_SIZE") // _JOBS


def crowded() -> bool:
    """Whether the machine holds more than the first mark, so that its connections may be slow."""
    try:
        held = re.search(r"^TCP:.* mem (\d+)", _HELD.read_text(), re.M)
    except OSError:
        return False
    mark = _first_mark()
    return held is not None and mark is not None and int(held[1]) > mark
