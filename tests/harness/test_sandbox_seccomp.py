"""The system call filter: its whole table by running the compiled program, and a selection for real."""

from __future__ import annotations

import errno
import json
import os
import platform
import socket
import struct
from functools import cache

import pytest

from evaluator.harness.sandbox import seccomp

from .sandboxes import needs_bubblewrap, run_inside

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the numbers below are those of x86_64"
)

X86_64, I386 = 0xC000003E, 0x40000003
X32 = 0x40000000
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
NO_PROTOCOL = 0x00050000 | errno.EPROTONOSUPPORT

# Numbers of x86_64, written down apart from the library that made the filter.
REFUSED = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438, "vmsplice": 278,
    "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249, "fanotify_init": 300,
    "modify_ldt": 154, "lookup_dcookie": 212, "syslog": 103, "mount": 165, "umount2": 166, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "open_tree": 428, "mount_setattr": 442,
    "open_tree_attr": 467, "pivot_root": 155, "chroot": 161, "open_by_handle_at": 304,
    "name_to_handle_at": 303, "setns": 308, "unshare": 272, "kexec_load": 246, "kexec_file_load": 320,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167,
    "swapoff": 168, "quotactl": 179, "quotactl_fd": 443, "acct": 163, "iopl": 172, "ioperm": 173, "vhangup": 153,
    "sync": 162, "syncfs": 306, "io_setup": 206, "timerfd_create": 283, "timer_create": 222, "signalfd": 282,
    "signalfd4": 289,
}  # fmt: skip
ALLOWED = {
    "read": 0, "write": 1, "mmap": 9, "futex": 202, "execve": 59, "memfd_create": 319, "sched_setaffinity": 203,
    "setpriority": 141, "prctl": 157, "seccomp": 317, "shm_open (openat)": 257, "epoll_wait": 232, "kill": 62,
    "prlimit64": 302, "mbind": 237, "membarrier": 324, "rseq": 334, "pidfd_open": 434, "socketpair": 53,
}  # fmt: skip
IOCTL, PERSONALITY, CLONE, CLONE3, SOCKET, SETSOCKOPT = 16, 135, 56, 435, 41, 54


@cache
def program() -> tuple[tuple[int, int, int, int], ...]:
    """The compiled filter as (code, jump if true, jump if false, constant)."""
    handle = seccomp.filter_fd()
    try:
        raw = os.read(handle, 1 << 20)
    finally:
        os.close(handle)
    return tuple(struct.iter_unpack("=HBBI", raw))


def verdict(number: int, *arguments: int, arch: int = X86_64) -> int:
    """What the filter says to one call. Knows the instructions that occur; any other fails the test."""
    words = [argument & 0xFFFFFFFFFFFFFFFF for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack("=IIQ6Q", number, arch, 0, *words)
    value, at = 0, 0
    while True:
        code, if_true, if_false, constant = program()[at]
        at += 1
        if code == 0x06:  # return
            return constant
        if code == 0x20:  # load a word of the call
            value = struct.unpack_from("=I", data, constant)[0]
        elif code == 0x54:  # and
            value &= constant
        elif code == 0x05:  # jump
            at += constant
        else:
            tests = {0x15: value == constant, 0x25: value > constant, 0x35: value >= constant}
            at += if_true if tests[code] else if_false


def test_table_is_the_one_that_is_meant() -> None:
    assert set(REFUSED) == set(seccomp.REFUSED)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_whatever_the_arguments(name: str) -> None:
    assert verdict(REFUSED[name]) == EPERM
    assert verdict(REFUSED[name], *[0xFFFFFFFFFFFFFFFF] * 6) == EPERM


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_allowed(name: str) -> None:
    assert verdict(ALLOWED[name]) == ALLOW


@pytest.mark.parametrize("number", [*REFUSED.values(), *ALLOWED.values(), CLONE, 512, 547])
def test_foreign_numbers_do_not_exist(number: int) -> None:
    assert verdict(number | X32) == ENOSYS
    assert verdict(number, arch=I386) == ENOSYS


@pytest.mark.parametrize("flag", seccomp.NAMESPACE_FLAGS.values())
def test_clone_makes_threads_but_no_namespaces(flag: int) -> None:
    thread = 0x3D0F00
    assert verdict(CLONE, thread) == ALLOW
    assert verdict(CLONE, 17) == ALLOW
    assert verdict(CLONE, thread | flag) == EPERM
    assert verdict(CLONE, flag | 17) == EPERM
    # Bits that the kernel ignores must not hide the flag.
    assert verdict(CLONE, flag | 0xFFFFFFFF00000000) == EPERM


def test_clone3_is_unknown() -> None:
    assert verdict(CLONE3) == ENOSYS


@pytest.mark.parametrize(
    "which",
    [(1, 47), (1, 61), (6, 2), (6, 13), (6, 37), *((1, program) for program in (26, 50, 51, 52))],
)
def test_nobody_has_the_kernel_send_later_or_run_a_program(which: tuple[int, int]) -> None:
    level, option = which
    assert verdict(SETSOCKOPT, 5, level, option) == EPERM
    # Both are ints: bits that the kernel ignores must not hide them.
    assert verdict(SETSOCKOPT, 5, level | 1 << 32, option | 1 << 40) == EPERM
    assert verdict(SETSOCKOPT, 5, level + 100, option) == ALLOW


def test_nobody_chooses_how_long_it_takes_to_close_a_socket() -> None:
    said_yes = 0x00050000
    level, option = seccomp.LINGER
    assert verdict(SETSOCKOPT, 5, level, option) == said_yes
    assert verdict(SETSOCKOPT, 5, level | 1 << 32, option | 1 << 40) == said_yes


@pytest.mark.parametrize("honest", [(1, 2), (1, 7), (1, 8), (1, 20), (6, 1), (6, 4), (41, 26)])
def test_what_gloo_and_nccl_ask_of_their_sockets_is_allowed(honest: tuple[int, int]) -> None:
    assert verdict(SETSOCKOPT, 5, *honest) == ALLOW


@pytest.mark.parametrize("request_number", [0x5412, 0x541C])
def test_no_typing_into_a_terminal(request_number: int) -> None:
    assert verdict(IOCTL, 0, request_number) == EPERM
    assert verdict(IOCTL, 0, request_number | 0xABCD << 32) == EPERM
    assert verdict(IOCTL, 0, 0x5413) == ALLOW


def test_personality_can_only_be_asked() -> None:
    assert verdict(PERSONALITY, 0xFFFFFFFF) == ALLOW
    assert verdict(PERSONALITY, 0x0040000) == EPERM
    assert verdict(PERSONALITY, 0) == EPERM


@pytest.mark.parametrize("family", [*range(70), 0x7FFFFFFF, 0xFFFFFFFF])
def test_socket_families_are_an_allow_list(family: int) -> None:
    wanted = ALLOW if family in seccomp.SOCKET_FAMILIES.values() else NO_FAMILY
    assert verdict(SOCKET, family) == wanted
    assert verdict(SOCKET, family | 1 << 32) in (wanted, NO_FAMILY)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("protocol", [0, 6, 17, 132, 136, 262, 1 << 32 | 262])
def test_internet_sockets_speak_tcp_and_udp(family: int, protocol: int) -> None:
    assert verdict(SOCKET, family, socket.SOCK_STREAM, protocol) == (ALLOW if protocol <= 17 else NO_PROTOCOL)
    assert verdict(SOCKET, socket.AF_UNIX, socket.SOCK_STREAM, protocol) == ALLOW


REAL = """
import ctypes, errno, json, os, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]
said = {
    "ptrace": call(101, 0, 0, 0, 0),
    "unshare": call(272, 0x10000000),
    "clone newuser": call(56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": call(435, 0, 0),
    "io_uring_setup": call(425, 1, 0),
    "keyctl": call(250, 0, -3, 0),
    "userfaultfd": call(323, 1),
    "timerfd_create": call(283, 1, 0),
    "signalfd4": call(289, -1, 0, 8, 0),
    "personality set": call(135, 0x40000),
    "personality query": call(135, 0xFFFFFFFF),
    "x32 getpid": call(0x40000000 | 39),
    "vsock": call(41, 40, 1, 0),
    "alg": call(41, 38, 5, 0),
    "mptcp": call(41, 2, 1, 262),
    "tiocsti": call(16, 0, 0x5412, 0),
    "memfd_create": call(319, ctypes.addressof(ctypes.create_string_buffer(b"x")), 0),
    "affinity": call(203, 0, 8, ctypes.addressof(ctypes.create_string_buffer(b"\\x01" + bytes(7)))),
}
thread = threading.Thread(target=lambda: said.update(thread="ok")); thread.start(); thread.join()
said["subprocess"] = subprocess.run(["echo", "ok"], capture_output=True, text=True).stdout.strip()
print(json.dumps(said))
"""


@needs_bubblewrap
def test_filter_is_in_force_inside() -> None:
    code, out, err = run_inside(REAL)
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "ptrace": "EPERM",
        "unshare": "EPERM",
        "clone newuser": "EPERM",
        "clone3": "ENOSYS",
        "io_uring_setup": "EPERM",
        "keyctl": "EPERM",
        "userfaultfd": "EPERM",
        "timerfd_create": "EPERM",
        "signalfd4": "EPERM",
        "personality set": "EPERM",
        "personality query": "ok",
        "x32 getpid": "ENOSYS",
        "vsock": "EAFNOSUPPORT",
        "alg": "EAFNOSUPPORT",
        "mptcp": "EPROTONOSUPPORT",
        "tiocsti": "EPERM",
        "memfd_create": "ok",
        "affinity": "ok",
        "thread": "ok",
        "subprocess": "ok",
    }
