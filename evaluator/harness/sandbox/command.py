"""The command line of one sandbox, in the root form and in the plain user's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from . import mounts, seccomp
from .births import Birth
from .errors import SpawnFailed
from .spec import SandboxSpec

_TOOL_FOLDERS = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin"
_NEEDED_CAPS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
# Tells who it is, steps into the groups, then becomes bubblewrap: no moment in which the job runs outside them.
# bubblewrap asks for its parent's death signal late, and never learns of a death before that: so it is asked for at
# once, and the parent is looked at afterwards.
_UNTIL_DEATH = ("--pdeathsig", "KILL")
_ENTER = """
[ "$PPID" = "$1" ] || exit 1
set -e; read -r it </proc/self/stat; echo "outermost $it" >>"$2"; shift 2
echo 1000 >/proc/self/oom_score_adj
n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1"; shift; n=$((n-1)); done; exec "$@"
"""
# When the machine runs out of memory a job goes first: the kernel's buffers for sockets and the like count for no
# process and no group, and the largest process may be the supervisor.
# A core limit of 1 stops the kernel's pipe handlers too, which 0 does not.
_RLIMITS = ("--core=1:1", "--nofile=4096:4096", "--rtprio=0:0", "--nice=0:0")


@cache
def tool(name: str) -> str | None:
    """The path of a system program, whatever PATH says."""
    return shutil.which(name, path=_TOOL_FOLDERS)


def need(name: str) -> str:
    """As ``tool``; SpawnFailed when it is missing."""
    path = tool(name)
    if path is None:
        raise SpawnFailed(f"{name} is not installed")
    return path


def _memfd(name: str, content: bytes) -> int:
    handle = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _identity_options(uid: int | None) -> list[str]:
    """Namespaces and privileges. ``uid`` is the job's own in the root form, None for a plain user."""
    shared = [
        "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
        "--hostname", mounts.HOSTNAME, "--die-with-parent", "--new-session", "--cap-drop", "ALL",
    ]  # fmt: skip
    if uid is None:
        me = str(mounts.USER_UID)
        return ["--unshare-user", "--uid", me, "--gid", me, *shared]
    # Without a user namespace root keeps real powers until setpriv, inside, has given them up: it may keep
    # exactly what that takes.
    return shared + [word for cap in _NEEDED_CAPS for word in ("--cap-add", cap)]


def _drop_words(uid: int | None) -> list[str]:
    """What runs before the job, inside, to take the identity of the job."""
    if uid is None:
        return []
    return [
        need("setpriv"), "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs",
        "--bounding-set=-all", "--inh-caps=-all", "--",
    ]  # fmt: skip


class Command:
    """``argv`` and ``pass_fds`` for the spawner, and the descriptors to close afterwards."""

    def __init__(self, spec: SandboxSpec, uid: int | None, procs_files: Sequence[str], birth: Birth) -> None:
        """``birth`` is open; the caller closes it."""
        self._temporary: list[int] = []
        try:
            options = [*self._options(spec, uid), "--info-fd", str(birth.handle)]
            content = b"".join(os.fsencode(word) + b"\0" for word in options)
            arguments = self._keep(_memfd("bwrap-args", content))
            self.argv = [
                need("setpriv"), *_UNTIL_DEATH,
                need("sh"), "-c", _ENTER, "sandbox", str(os.getpid()), str(birth.path),
                str(len(procs_files)), *procs_files,
                need("prlimit"), *_RLIMITS,
                need("bwrap"), "--args", str(arguments), *_drop_words(uid), *spec.argv,
            ]  # fmt: skip
            self.pass_fds = (*spec.pass_fds, *self._temporary, birth.handle)
        except BaseException:
            self.close()
            raise

    def _keep(self, handle: int) -> int:
        self._temporary.append(handle)
        return handle

    def _options(self, spec: SandboxSpec, uid: int | None) -> list[str]:
        inside_uid = mounts.USER_UID if uid is None else uid
        stubs = [
            (self._keep(_memfd(Path(path).name, text.encode())), path)
            for path, text in mounts.stub_files(inside_uid).items()
        ]
        options = (
            _identity_options(uid) + mounts.mount_options(spec, stubs) + ["--chdir", spec.cwd, "--clearenv"]
        )
        for key, value in spec.env.items():
            options += ["--setenv", key, value]
        if seccomp.available() is None:
            options += ["--seccomp", str(self._keep(seccomp.filter_fd()))]
        return options

    def close(self) -> None:
        """Close what only the child needs."""
        for handle in self._temporary:
            with suppress(OSError):
                os.close(handle)
        self._temporary.clear()
