"""Where on this host job cgroups can be made: v2, v1, or both side by side ("hybrid")."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

V1_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "freezer")
_V2_WANTED = ("memory", "pids", "cpu")
_SUPERVISOR_LEAF = "pkb-supervisor"


@dataclass(frozen=True)
class Place:
    """A group under which job groups can be made."""

    version: int
    base: Path


@dataclass(frozen=True)
class Layout:
    """Which place serves which purpose; a missing key means that this host cannot do it.

    Keys: ``freeze``, ``kill``, ``memory``, ``pids``, ``cpu``, ``cputime``.
    """

    places: dict[str, Place] = field(default_factory=dict)

    def bases(self) -> list[Place]:
        """All places, each once."""
        return list(dict.fromkeys(self.places.values()))

    def describe(self) -> str:
        """One line for the environment record of a score."""
        return " ".join(f"{key}=v{place.version}" for key, place in sorted(self.places.items())) or "none"


@dataclass(frozen=True)
class Mount:
    """One mounted cgroup hierarchy; ``controllers`` is empty for v2."""

    version: int
    root: str
    point: Path
    controllers: frozenset[str]


def read_mounts(text: str) -> list[Mount]:
    """The cgroup mounts in the text of ``/proc/self/mountinfo``."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.partition(" ")
        if kind not in ("cgroup", "cgroup2"):
            continue
        words = left.split()
        flags = frozenset(options.split(" ")[-1].split(","))
        controllers = flags & frozenset(V1_CONTROLLERS) if kind == "cgroup" else frozenset()
        found.append(Mount(2 if kind == "cgroup2" else 1, words[3], Path(words[4]), controllers))
    return found


def read_own_groups(text: str) -> dict[str, str]:
    """Controller name -> own path, from the text of ``/proc/self/cgroup``; v2 has the key ``""``."""
    own: dict[str, str] = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    return own


def own_folder(mount: Mount, path: str) -> Path:
    """The folder of group ``path`` below a mount, which in a container may show only part of the tree."""
    if mount.root != "/" and (path == mount.root or path.startswith(mount.root + "/")):
        path = path[len(mount.root) :]
    folder = mount.point / path.strip("/")
    if folder.name == _SUPERVISOR_LEAF:
        folder = folder.parent
    return folder if folder.is_dir() else mount.point


def _probe(base: Path, files: Iterable[str]) -> set[str]:
    """Which of ``files`` a fresh group under ``base`` has; empty when no group can be made there."""
    trial = base / f"pkb-probe-{secrets.token_hex(4)}"
    try:
        trial.mkdir()
    except OSError:
        return set()
    try:
        return {name for name in files if os.access(trial / name, os.W_OK)}
    finally:
        with suppress(FileNotFoundError):
            trial.rmdir()


def _enabled(base: Path) -> set[str]:
    try:
        return set((base / "cgroup.subtree_control").read_text().split())
    except OSError:
        return set()


def _enable(base: Path) -> set[str]:
    """Turn the wanted controllers on for children of ``base``; returns those that could not be."""
    try:
        offered = set((base / "cgroup.controllers").read_text().split())
    except OSError:
        return set()
    left = set()
    for name in (offered & set(_V2_WANTED)) - _enabled(base):
        try:
            (base / "cgroup.subtree_control").write_text(f"+{name}")
        except OSError:
            left.add(name)
    return left


def _step_into_leaf(base: Path) -> None:
    """Move our own group's processes into a leaf: a v2 group that has processes has no limited children."""
    leaf = base / _SUPERVISOR_LEAF
    try:
        leaf.mkdir(exist_ok=True)
        for pid in (base / "cgroup.procs").read_text().split():
            try:
                (leaf / "cgroup.procs").write_text(pid)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise
    except OSError:
        return


def _v2_base(mount: Mount, own: Path) -> Path:
    """The best v2 group for jobs: our own, else (root) one at the top, else our own once we are in a leaf."""
    if not _enable(own):
        return own
    if os.geteuid() == 0 and own != mount.point and not _enable(mount.point):
        top = mount.point / "pkb"
        try:
            top.mkdir(exist_ok=True)
        except OSError:
            return own
        if not _enable(top):
            return top
    _step_into_leaf(own)
    _enable(own)
    return own


def _add_v2(places: dict[str, Place], mount: Mount, own: dict[str, str]) -> None:
    if "" not in own:
        return
    base = _v2_base(mount, own_folder(mount, own[""]))
    purposes = {
        "cputime": "cgroup.procs",
        "freeze": "cgroup.freeze",
        "kill": "cgroup.kill",
        "memory": "memory.max",
        "pids": "pids.max",
        "cpu": "cpu.max",
    }
    files = _probe(base, purposes.values())
    if "cgroup.procs" in files:
        places.update((purpose, Place(2, base)) for purpose, name in purposes.items() if name in files)


def _add_v1(places: dict[str, Place], mount: Mount, own: dict[str, str]) -> None:
    purposes = (
        ("freezer", "freeze", "freezer.state"),
        ("memory", "memory", "memory.limit_in_bytes"),
        ("pids", "pids", "pids.max"),
        ("cpu", "cpu", "cpu.cfs_quota_us"),
        ("cpuacct", "cputime", "cpuacct.usage"),
    )
    for controller, purpose, name in purposes:
        if controller in mount.controllers and purpose not in places and controller in own:
            base = own_folder(mount, own[controller])
            if {name, "cgroup.procs"} <= _probe(base, (name, "cgroup.procs")):
                places[purpose] = Place(1, base)


def detect(mountinfo: str, own_groups: str) -> Layout:
    """The layout that the two texts of /proc describe, tried out on the file system. v2 comes first."""
    mounts, own = read_mounts(mountinfo), read_own_groups(own_groups)
    places: dict[str, Place] = {}
    for mount in sorted(mounts, key=lambda mount: -mount.version):
        if mount.version == 2 and "freeze" not in places:
            _add_v2(places, mount, own)
        elif mount.version == 1:
            _add_v1(places, mount, own)
    return Layout(places)


@lru_cache(maxsize=1)
def v1_layout() -> Layout:
    """The layout of this host as if it had no v2."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    old = "\n".join(line for line in mounts if " - cgroup2 " not in line)
    return detect(old, Path("/proc/self/cgroup").read_text())


@lru_cache(maxsize=1)
def host_layout() -> Layout:
    """The layout of this host, found once per process."""
    return detect(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
