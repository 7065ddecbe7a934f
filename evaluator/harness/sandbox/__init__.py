"""The sandbox of one job: bubblewrap, seccomp, control groups, freezer, logs. No Django, no torch."""

from .box import Sandbox
from .errors import FreezeFailed, KillFailed, SandboxError, SpawnFailed
from .host import host_grade
from .leftovers import cleanup_leftovers
from .logs import CappedLog, StreamText
from .mounts import VENV_INSIDE, inside, python_inside, wheel_toolkits
from .names import default_host_id, own_lease
from .selfcheck import SelfCheck, self_check
from .spec import HostReport, SandboxSpec, UsageReport

__all__ = [
    "VENV_INSIDE",
    "CappedLog",
    "FreezeFailed",
    "HostReport",
    "KillFailed",
    "Sandbox",
    "SandboxError",
    "SandboxSpec",
    "SelfCheck",
    "SpawnFailed",
    "StreamText",
    "UsageReport",
    "cleanup_leftovers",
    "default_host_id",
    "host_grade",
    "inside",
    "own_lease",
    "python_inside",
    "self_check",
    "wheel_toolkits",
]
