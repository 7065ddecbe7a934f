"""What a job sees: an allow list of mounts, and stub files. Everything else does not exist inside."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from .spec import SandboxSpec

CHECKOUT = Path(__file__).resolve().parents[3]
VENV_INSIDE = "/opt/pkb/venv"
HOSTNAME = "rank"
USER_UID = 1000
"""The uid inside when the supervisor is a plain user."""

_MERGED = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
_CPU_FACTS = "/sys/devices/system/cpu"


def stub_files(uid: int) -> dict[str, str]:
    """Path -> text of the files in /etc that are made up for a job."""
    return {
        "/etc/passwd": f"root:x:0:0::/:/bin/false\nrank:x:{uid}:{uid}::/home/rank:/bin/sh\n",
        "/etc/group": f"root:x:0:\nrank:x:{uid}:\n",
        "/etc/hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "/etc/resolv.conf": "",
    }


def python_inside() -> str:
    """The path inside of the interpreter that runs this process."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return f"{VENV_INSIDE}/bin/python"


def inside(path: str) -> str:
    """Where a job sees a path of the virtual environment, or the path itself."""
    if sys.prefix == sys.base_prefix or not _is_below(path, sys.prefix):
        return path
    return VENV_INSIDE + path.removeprefix(sys.prefix)


def wheel_toolkits() -> list[Path]:
    """Folders of CUDA toolkits that were installed as wheels, beside torch: `bin` with nvcc, `nvvm`, `lib`."""
    return sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("cu[0-9]*"))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_shown_by_usr(path: str) -> bool:
    return _is_below(path, "/usr") and not _is_below(path, str(CHECKOUT))


def _interpreter_binds() -> Iterator[tuple[str, str]]:
    """The base installation at its own path, the virtual environment at a fixed one."""
    base = sys.base_prefix
    if not _is_shown_by_usr(base):
        yield base, base
    # A distribution may keep the real binary outside its prefix.
    binary = os.path.realpath(sys.executable)
    if not _is_below(binary, base) and not _is_shown_by_usr(binary):
        yield binary, binary
    if sys.prefix != base:
        yield sys.prefix, VENV_INSIDE


class _Tree:
    """Collects bwrap options and makes each parent folder once, readable for the job.

    bwrap makes missing parents itself, but in the root form with modes that shut the job out.
    """

    def __init__(self) -> None:
        self.options: list[str] = []
        self._made = {"/", "/usr", "/proc", "/dev"}

    def folder(self, path: str) -> None:
        for parent in reversed(Path(path).parents):
            self.folder_itself(str(parent))
        self.folder_itself(path)

    def folder_itself(self, path: str) -> None:
        if path not in self._made and not _is_below(path, "/usr"):
            self._made.add(path)
            self.options += ["--perms", "0755", "--dir", path]

    def bind(self, host: str, inside: str) -> None:
        self.folder(str(Path(inside).parent))
        self.options += ["--ro-bind", host, inside]
        self._made.add(inside)

    def tmpfs(self, path: str, size: int) -> None:
        self.folder(str(Path(path).parent))
        self.options += ["--perms", "1777", "--size", str(size), "--tmpfs", path]
        self._made.add(path)


def _hide(tree: _Tree, folder: str) -> None:
    tree.options += ["--perms", "0755", "--size", "4096", "--tmpfs", folder, "--remount-ro", folder]


def _system(tree: _Tree, checkout: Path = CHECKOUT) -> None:
    tree.options += ["--ro-bind", "/usr", "/usr"]
    if _is_below(str(checkout), "/usr"):  # as in many a container: /usr/src/app
        _hide(tree, str(checkout))
    for path in _MERGED:
        if os.path.islink(path):
            tree.options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            tree.bind(path, path)
    for path in _ETC:
        if os.path.exists(path):
            tree.bind(path, path)
    if os.path.isdir(_CPU_FACTS):
        tree.bind(_CPU_FACTS, _CPU_FACTS)


def mount_options(spec: SandboxSpec, stubs: Iterable[tuple[int, str]]) -> list[str]:
    """The mount part of bwrap's options.

    ``stubs`` are (descriptor, path inside) of the stub files. The root and /dev are made read-only at the
    end, so that the only places a job can write to are the three capped ones.
    """
    tree = _Tree()
    _system(tree)
    tree.options += ["--proc", "/proc", "--dev", "/dev"]
    tree.tmpfs("/dev/shm", spec.shm_bytes)  # noqa: S108 (a path inside, fresh)
    tree.tmpfs("/tmp", spec.tmp_bytes)  # noqa: S108 (a path inside, fresh)
    tree.tmpfs("/home/rank", spec.home_bytes)
    tree.folder("/etc")
    for handle, path in stubs:
        tree.options += ["--perms", "0644", "--ro-bind-data", str(handle), path]
    for host, inside in _interpreter_binds():
        tree.bind(host, inside)
    for device in spec.devices:
        tree.options += ["--dev-bind", device, device]
    for source, inside in spec.ro_binds.items():
        tree.bind(str(source), inside)
    return [*tree.options, "--remount-ro", "/dev", "--remount-ro", "/"]
