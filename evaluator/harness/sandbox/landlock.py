"""Whether the kernel has Landlock, which keeps the ranks of one job out of each other's memory."""

from __future__ import annotations

import ctypes

CREATE_RULESET = 444
"""The number of ``landlock_create_ruleset``, equal on every architecture."""
NEEDED_ABI = 2
"""With it come the rights that a rank's domain handles (Linux 5.19)."""
_ASK_VERSION = 1


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers; 0 where there is none or it is switched off."""
    version = ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, _ASK_VERSION)
    return max(0, int(version))


def missing() -> str | None:
    """None when ranks can be kept apart, otherwise the reason in words."""
    if landlock_abi() >= NEEDED_ABI:
        return None
    return "no Landlock (Linux 5.19, with landlock in the list of lsm=): ranks of a job could read each other's memory"
