"""What keeps the ranks of a job from reading each other's slots instead of communicating.

A rank's inputs lie in its slot before it is let run, so a peer that could map them would have an
answer without any exchange. Slots are therefore mapped without a descriptor that stays behind, and on
kernels that have Landlock each rank is a domain of its own, which no peer may look into by /proc even
when both want it. Shared memory that ranks make themselves works as ever.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import struct

_MAKE_CHAR, _REFER = 1 << 6, 1 << 13
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38


def limit_address_space(more: int) -> None:
    """Let this process map `more` bytes beside what it has mapped: torch's libraries alone, those for cards among
    them, take 0.6 to 3.2 GB."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more,) * 2)


def map_slot(descriptor: int, nbytes: int) -> memoryview:
    """Map a slot for reading and writing and close the descriptor (Python's own mmap would keep a copy)."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    ]  # fmt: skip
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    address = libc.mmap(None, nbytes, protection, mmap.MAP_SHARED, descriptor, 0)
    os.close(descriptor)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "the slot could not be mapped")
    return memoryview((ctypes.c_ubyte * nbytes).from_address(address)).cast("B")


def enter_own_domain() -> None:
    """Make this process a Landlock domain; nothing else is restricted.

    Does nothing where the kernel has none (the host's grade says so); OSError when it has one and refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_CREATE, None, 0, 1) < 2:
        return
    # A domain needs a right to handle: making device nodes, which no job can do anyway. Links and renames
    # between folders (REFER) would be refused too unless they are allowed again, everywhere.
    rights = struct.pack("Q", _MAKE_CHAR | _REFER)
    rules = libc.syscall(_CREATE, rights, len(rights), 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "no Landlock ruleset could be made")
    libc.prctl(
        _NO_NEW_PRIVS, 1, 0, 0, 0
    )  # outside a sandbox nobody has set it, and without it a plain user is refused
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = struct.pack("=Qi", _REFER, root)
        added = libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, allowed, 0)
        if added != 0 or libc.syscall(_RESTRICT, rules, 0) != 0:
            raise OSError(ctypes.get_errno(), "the Landlock domain could not be entered")
    finally:
        os.close(root)
        os.close(rules)
