"""The plain data that goes into a sandbox and comes out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

MIB = 1 << 20

Grade = Literal["full", "partial", "none"]
"""How well a host can isolate a job; recorded on each score."""


@dataclass(frozen=True)
class SandboxSpec:
    """One job: what runs inside, what it sees and how much it may use.

    ``argv`` and the values of ``ro_binds`` are paths inside. ``pass_fds`` stay open inside under the same
    numbers. ``env`` is the whole environment. Sizes are in bytes; ``cpu_cores`` None means no quota.
    Host files named in ``ro_binds`` must be readable for everyone: the job has a uid of its own.
    """

    argv: Sequence[str]
    pass_fds: Sequence[int] = ()
    ro_binds: Mapping[str | Path, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = 4096 * MIB
    pids_max: int | None = 512
    cpu_cores: float | None = None
    tmp_bytes: int = 256 * MIB
    home_bytes: int = 64 * MIB
    shm_bytes: int = 256 * MIB
    name: str = "job"
    devices: Sequence[str] = ()
    """Device nodes that a card target needs inside, such as ``/dev/nvidia0``."""
    cwd: str = "/home/rank"
    host_id: str | None = None
    lease: str | None = None
    """Names of the evaluator host and of the lease; None takes those of this process (see ``names``)."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything has been made."""
        if not self.argv:
            raise ValueError("argv is empty")
        if any(fd <= 2 for fd in self.pass_fds):
            raise ValueError("descriptors 0, 1 and 2 belong to the sandbox itself")
        for size in (self.tmp_bytes, self.home_bytes, self.shm_bytes):
            if size < 4096:
                raise ValueError("a tmpfs needs at least one page")
        for key, value in self.env.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or "\0" in value:
                raise ValueError(f"not an environment variable: {key!r}")
        for inside in self.ro_binds.values():
            if not inside.startswith("/") or ".." in inside.split("/"):
                raise ValueError(f"not an absolute path inside: {inside!r}")


@dataclass(frozen=True)
class UsageReport:
    """What a job used in all. A figure that the host cannot count is None."""

    max_memory_bytes: int | None = None
    oom_kills: int = 0
    pids_peak_hit: bool = False
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class HostReport:
    """What this host can set up; ``reasons`` say what keeps it from ``full``, ``fix`` what lifts that."""

    grade: Grade
    reasons: tuple[str, ...] = ()
    fix: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
