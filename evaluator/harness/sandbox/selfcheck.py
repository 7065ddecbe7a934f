"""Look at a sandbox from inside and compare with what it should be.

A wrong bind would silently run another Python, a wrong option would leave a power; both are found here, before
the first job of a worker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import landlock, names, seccomp
from .box import Sandbox
from .mounts import CHECKOUT, USER_UID, VENV_INSIDE, python_inside
from .probe import torch_version
from .spawner import SPAWN_ENV
from .spec import SandboxSpec

_LIMIT_S = 120.0
_CAPPED = {"/tmp", "/home/rank", "/dev/shm"}  # noqa: S108 (paths inside)
_cache: dict[tuple[object, ...], SelfCheck] = {}


@dataclass(frozen=True)
class SelfCheck:
    """``problems`` is empty when all is as it should be; ``facts`` is what the probe found."""

    problems: tuple[str, ...]
    facts: Mapping[str, Any]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the sandbox is as it should be."""
        return not self.problems


def hidden_paths() -> list[str]:
    """Host paths that a job must not be able to read: the checkout, homes, secrets, sockets, cgroups."""
    paths = [str(CHECKOUT / name) for name in ("manage.py", ".git", "evaluator", "portal", "var")]
    home = Path.home()
    with suppress(OSError):
        entries = [entry for entry in home.iterdir() if not Path(sys.base_prefix).is_relative_to(entry)]
        paths += [str(entry) for entry in entries if not Path(sys.prefix).is_relative_to(entry)]
    fixed = (
        "/etc/shadow",
        "/etc/ssh",
        "/var",
        "/run",
        "/boot",
        "/mnt",
        "/srv",
        "/sys/fs/cgroup",
        "/proc/kcore",
    )
    return [*paths, *fixed, str(names.run_root())]


def judge_facts(facts: Mapping[str, Any], uid: int | None, env: Mapping[str, str]) -> list[str]:
    """What is wrong with the findings of a probe that ran under ``uid`` (None: a plain user's form)."""
    own = USER_UID if uid is None else uid
    prefix = VENV_INSIDE if sys.prefix != sys.base_prefix else sys.prefix
    # bubblewrap sets PWD, and Python itself may set LC_CTYPE.
    extra = set(facts["environment"]) - set(env) - {"PWD", "LC_CTYPE"}
    extra |= set(facts["first_environment"]) - SPAWN_ENV.keys() - {"PWD"}
    wanted_seccomp = "2" if seccomp.available() is None else "0"
    checks = {
        f"another Python inside: {facts['python']}": facts["python"] == sys.version,
        f"another prefix inside: {facts['prefix']}": facts["prefix"] == prefix,
        f"another torch inside: {facts['torch']}": facts["torch"] == torch_version(False),
        f"wrong identity: {facts['uids']}": facts["uids"] == [own],
        # A plain user's own groups show as the overflow group: no power comes with them.
        f"supplementary groups: {facts['groups']}": uid is None or set(facts["groups"]) <= {own},
        f"capabilities left: {facts['caps']}": not any(facts["caps"].values()) or uid is None,
        f"effective capabilities left: {facts['caps']}": not facts["caps"]["CapEff"]
        | facts["caps"]["CapPrm"],
        "new privileges are possible": facts["no_new_privs"] == "1",
        f"seccomp mode {facts['seccomp']}": facts["seccomp"] == wanted_seccomp,
        f"network interfaces: {facts['interfaces']}": facts["interfaces"] == ["lo"],
        f"processes visible: {facts['processes']}": len(facts["processes"]) <= 3,
        f"environment carried in: {sorted(extra)}": not extra,
        f"readable inside: {facts['visible']}": not facts["visible"],
        f"writable inside: {facts['writable']}": set(facts["writable"]) <= _CAPPED,
        f"Landlock {facts['landlock']} inside": facts["landlock"] == landlock.landlock_abi(),
        "new namespaces are possible": not facts["namespaces_open"] or wanted_seccomp == "0",
    }
    return [text for text, fine in checks.items() if not fine]


def _run(import_torch: bool) -> SelfCheck:
    start = time.monotonic()
    env = {"PATH": "/usr/bin:/bin"}
    request = json.dumps({"hidden": hidden_paths(), "torch": import_torch})
    source = (Path(__file__).parent / "probe.py").read_text()
    argv = [python_inside(), "-I", "-c", source, request]
    with Sandbox(SandboxSpec(argv=argv, env=env, name="selfcheck")) as box:
        try:
            answer, said = box.communicate(_LIMIT_S)
        except subprocess.TimeoutExpired:
            answer, said = b"", b"no answer in time"
        uid = box.uid
    try:
        facts = json.loads(answer)
    except ValueError:
        text = said.decode("utf-8", "replace").strip()[-2000:]
        return SelfCheck((f"the probe did not run: {text}",), {}, time.monotonic() - start)
    return SelfCheck(tuple(judge_facts(facts, uid, env)), facts, time.monotonic() - start)


def self_check(*, import_torch: bool = False, fresh: bool = False) -> SelfCheck:
    """Start a sandbox, look around in it, and say what is wrong.

    ``import_torch`` loads torch there (1-2 s; otherwise only its installed version is read). The answer is
    kept per process and interpreter; ``fresh`` asks again.
    """
    key = (import_torch, sys.version, sys.prefix, torch_version(False), os.geteuid())
    if fresh or key not in _cache:
        _cache[key] = _run(import_torch)
    return _cache[key]
