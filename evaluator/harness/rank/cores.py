"""Each rank on cores of its own, or as near to it as the host has cores.

A job that thaws goes on where it was frozen, so that of two identical jobs one may sit three ranks to a core
and stay the slower for seconds, which no interval within a run can see. Both jobs are therefore laid out alike.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_SET_AFFINITY = {"x86_64": 203, "aarch64": 122}
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _PRETEND_DONE = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2


def hold(cores: list[int]) -> None:
    """Keep this process and whatever it starts on `cores`; later requests to move end well and do nothing.

    Refusing them would fail honest files whose libraries ask. A core that the host does not lend leaves the
    process where it is.
    """
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        return
    number = _SET_AFFINITY.get(platform.machine())
    if number is None:
        return
    # Foreign architectures' numbers never come this far: the sandbox's own filter answers them.
    steps = [
        (_LOAD_WORD, 0, 0, 0),
        (_JUMP_IF_EQUAL, 0, 1, number),
        (_RETURN, 0, 0, _PRETEND_DONE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    head = struct.pack("@HP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(head), 0, 0)
