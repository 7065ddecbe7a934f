"""What this host can set up, found by setting it up."""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache

from . import landlock, seccomp
from .box import Sandbox
from .command import tool
from .errors import SandboxError
from .layout import host_layout
from .spec import MIB, HostReport, SandboxSpec

_INSTALLERS = {
    "apt-get": "apt-get install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "zypper": "zypper install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "apk": "apk add bubblewrap setpriv util-linux-misc",
}
_AS_ROOT = "run the evaluator as root, or as a systemd service with Delegate=yes"
_NEEDED = {
    "freeze": "no writable cgroup freezer: jobs that are not on turn can only be stopped by signals",
    "memory": "no writable memory cgroup: a job may use all memory of this machine",
    "pids": "no writable pids cgroup: a job may start any number of processes",
}
_TRIAL_LIMIT_S = 20.0


def install_command() -> str:
    """The one command that installs bubblewrap here, with sudo for a plain user."""
    known = next((text for name, text in _INSTALLERS.items() if tool(name)), "install the package bubblewrap")
    return known if os.geteuid() == 0 else f"sudo {known}"


def _userns_fix() -> str:
    """What lets a plain user make namespaces, by the switch that this kernel has."""
    if os.path.exists("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
        return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    if os.path.exists("/proc/sys/kernel/unprivileged_userns_clone"):
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    return "sudo sysctl user.max_user_namespaces=10000"


def _trial() -> str | None:
    """None when a sandbox runs here, otherwise what it said."""
    spec = SandboxSpec(argv=["/usr/bin/env", "true"], name="trial", memory_bytes=64 * MIB, pids_max=16)
    box = Sandbox(spec)
    try:
        with box:
            said = box.communicate(_TRIAL_LIMIT_S)[1].decode("utf-8", "replace").strip()
            code = box.returncode
    except (SandboxError, OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if code == 0 else said or f"exit code {code}"


def _report() -> HostReport:
    details = {"cgroups": host_layout().describe(), "form": "root" if os.geteuid() == 0 else "user"}
    if tool("bwrap") is None:
        return HostReport("none", ("bubblewrap is not installed",), install_command(), details)
    failure = _trial()
    if failure is not None:
        fix = None if os.geteuid() == 0 else _userns_fix()
        return HostReport("none", (f"bubblewrap does not work here: {failure}",), fix, details)
    places = host_layout().places
    reasons = [text for purpose, text in _NEEDED.items() if purpose not in places]
    fix = _AS_ROOT if reasons else None
    missing = seccomp.available()
    if missing:
        reasons.append(missing)
        fix = fix or "install libseccomp (Debian: libseccomp2)"
    if (apart := landlock.missing()) is not None:
        reasons.append(apart)
        fix = fix or "boot a kernel of 5.19 or newer with landlock among its security modules"
    return HostReport("partial" if reasons else "full", tuple(reasons), fix, details)


@lru_cache(maxsize=1)
def _cached_report() -> HostReport:
    return _report()


def host_grade(*, fresh: bool = False) -> HostReport:
    """The isolation grade of this host, found by a trial run (20 ms) once per process; ``fresh`` tries again."""
    if fresh:
        _cached_report.cache_clear()
        tool.cache_clear()
        host_layout.cache_clear()
    return _cached_report()
