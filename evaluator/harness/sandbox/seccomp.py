"""The system calls that a job cannot make.

The default is to allow: honest kernels use what the C library, gloo and torch use, which changes with every
release. Refused is what reaches other processes' memory, the kernel's less trodden parts, or new namespaces.
"""

from __future__ import annotations

import errno
import os
import platform
from types import ModuleType

REFUSED: tuple[str, ...] = (
    # memory and descriptors of other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "vmsplice",
    # parts of the kernel with a long record of faults, that no honest job needs
    "bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    "keyctl", "add_key", "request_key", "fanotify_init", "modify_ldt", "lookup_dcookie", "syslog",
    # mounts
    "mount", "umount2", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "mount_setattr",
    "open_tree_attr", "pivot_root", "chroot", "open_by_handle_at", "name_to_handle_at",
    # namespaces
    "setns", "unshare",
    # what is shared by the whole machine: all file systems written out, and a pool of 65536 requests for everybody
    "sync", "syncfs", "io_setup",
    # timers that wake whoever watches, and ways to watch signals: the kernel walks all watchers of one (a descriptor
    # may have as many as 250000, through epoll) when it expires, frozen job or not, in whoever's turn that is
    "timerfd_create", "timer_create", "signalfd", "signalfd4",
    # the machine itself
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
    "swapoff", "quotactl", "quotactl_fd", "acct", "iopl", "ioperm", "vhangup",
)  # fmt: skip
"""Calls that end with EPERM whatever their arguments."""

_NEWER = {"mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467}
"""Numbers, equal on every architecture, of calls that an older libseccomp has no name for."""

NAMESPACE_FLAGS = {
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWCGROUP": 0x02000000,
    "CLONE_NEWUTS": 0x04000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}

SOCKET_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
"""Allowed families. AF_VSOCK, above all, has no network namespace: it would reach the hypervisor."""

_LAST_PROTOCOL = 17
"""UDP. What internet sockets have above it (MPTCP, SCTP, UDP-Lite) no honest file needs; MPTCP has workers in the
kernel, which go on while a job is frozen."""

TRAFFIC_OPTIONS = {
    "SO_MAX_PACING_RATE": (1, 47),
    "SO_TXTIME": (1, 61),
    "TCP_MAXSEG": (6, 2),
    "TCP_CONGESTION": (6, 13),
    "TCP_TX_DELAY": (6, 37),
    "TCP_RTO_MAX_MS": (6, 44),
    "TCP_RTO_MIN_US": (6, 45),
    "TCP_DELACK_MAX_US": (6, 46),
}
"""Refused (level, option) of sockets. By them the kernel sends on when it is told to, in pieces as small as it is told:
work for the processor that goes on while the job is frozen."""

PROGRAM_OPTIONS = {
    "SO_ATTACH_FILTER": (1, 26),
    "SO_ATTACH_BPF": (1, 50),
    "SO_ATTACH_REUSEPORT_CBPF": (1, 51),
    "SO_ATTACH_REUSEPORT_EBPF": (1, 52),
}
"""Refused, too: programs that the kernel runs on what a socket is sent, in the sender's time, which may be the
supervisor's. It never pauses in them: 2000 walks through a packet of 8 kB take 10 ms, and one packet may go to
thousands of sockets, while nothing else has that core and nobody there can be stopped."""

LINGER = (1, 13)
"""SO_LINGER: the call says yes and does nothing. With it, who closes a socket last waits as long as its owner chose:
it may be the supervisor that was sent the descriptor, or a thread of the kernel. Some libraries ask for 0 seconds."""

_LAST_FAMILY = 63
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_PERSONALITY_QUERY = 0xFFFFFFFF
_LOW_WORD = 0xFFFFFFFF


def available() -> str | None:
    """None when filters can be made here, otherwise the reason in words."""
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:
        return f"seccomp filters cannot be made: {error}"
    if platform.machine() not in ("x86_64", "aarch64"):
        return f"no seccomp table for {platform.machine()}"
    return None


def _refuse_calls(lib: ModuleType, rules: object) -> None:
    for name in REFUSED:
        number = lib.resolve_syscall(lib.Arch.NATIVE, name)
        if number < 0:
            number = _NEWER.get(name, number)
        if number >= 0:
            rules.add_rule(lib.ERRNO(errno.EPERM), number)  # type: ignore[attr-defined]


def _refuse_by_argument(lib: ModuleType, rules: object) -> None:
    add = rules.add_rule  # type: ignore[attr-defined]
    refuse = lib.ERRNO(errno.EPERM)
    for flag in NAMESPACE_FLAGS.values():
        add(refuse, "clone", lib.Arg(0, lib.MASKED_EQ, flag, flag))
    # Its flags lie in memory, where a filter cannot look; the C library falls back to clone.
    clone3 = lib.resolve_syscall(lib.Arch.NATIVE, "clone3")
    add(lib.ERRNO(errno.ENOSYS), clone3 if clone3 >= 0 else 435)
    for request in _TERMINAL_INJECTION:
        add(refuse, "ioctl", lib.Arg(1, lib.MASKED_EQ, _LOW_WORD, request))
    answers = [(refuse, option) for option in (TRAFFIC_OPTIONS | PROGRAM_OPTIONS).values()]
    for answer, option in (*answers, (lib.ERRNO(0), LINGER)):
        whole = [lib.Arg(at, lib.MASKED_EQ, _LOW_WORD, value) for at, value in enumerate(option, 1)]
        add(answer, "setsockopt", *whole)
    add(refuse, "personality", lib.Arg(0, lib.NE, _PERSONALITY_QUERY))
    no_family = lib.ERRNO(errno.EAFNOSUPPORT)
    for family in range(_LAST_FAMILY + 1):
        if family not in SOCKET_FAMILIES.values():
            add(no_family, "socket", lib.Arg(0, lib.MASKED_EQ, _LOW_WORD, family))
    add(no_family, "socket", lib.Arg(0, lib.GT, _LAST_FAMILY))
    for name in ("AF_INET", "AF_INET6"):
        internet = lib.Arg(0, lib.MASKED_EQ, _LOW_WORD, SOCKET_FAMILIES[name])
        add(lib.ERRNO(errno.EPROTONOSUPPORT), "socket", internet, lib.Arg(2, lib.GT, _LAST_PROTOCOL))


def filter_fd() -> int:
    """A descriptor of the compiled filter, at its start, for ``bwrap --seccomp``. The caller closes it.

    Calls of a foreign architecture (x32, 32-bit) end with ENOSYS.
    """
    import pyseccomp as lib

    rules = lib.SyscallFilter(lib.ALLOW)
    rules.set_attr(lib.Attr.ACT_BADARCH, lib.ERRNO(errno.ENOSYS))
    _refuse_calls(lib, rules)
    _refuse_by_argument(lib, rules)
    handle = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    with open(handle, "wb", closefd=False) as file:
        rules.export_bpf(file)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
