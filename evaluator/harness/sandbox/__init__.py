"""The sandbox of one job: bubblewrap, seccomp, control groups, freezer, logs. No Django, no torch."""

from .box import Sandbox
from .errors import FreezeFailed, KillFailed, SandboxError, SpawnFailed
from .mounts import VENV_INSIDE, python_inside
from .names import default_host_id, own_lease
from .spec import HostReport, SandboxSpec, UsageReport

__all__ = [
    "VENV_INSIDE",
    "FreezeFailed",
    "HostReport",
    "KillFailed",
    "Sandbox",
    "SandboxError",
    "SandboxSpec",
    "SpawnFailed",
    "UsageReport",
    "default_host_id",
    "own_lease",
    "python_inside",
]
