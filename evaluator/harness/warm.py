"""Warm templates: sandboxes in which a Python has imported torch and waits for a job.

A template serves one job and dies with its sandbox. The pool keeps some waiting, so that a job
starts in a fraction of a second instead of the seconds that four imports of torch cost.
"""

from __future__ import annotations

import json
import os
import platform
import select
import shutil
import socket
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from evaluator.harness.channel import channel
from evaluator.harness.errors import JudgeFault
from evaluator.harness.plainbox import PlainBox
from evaluator.harness.sandbox import Sandbox, SandboxSpec, host_grade, python_inside
from problems.registry import Target, load_target

RANK_CODE = Path(__file__).parent / "rank"
NCCL_INSIDE = "/opt/pkb/nccl/libnccl.so.2"
MPS_FOLDER = "/tmp/mps"  # noqa: S108 (the sandbox's own tmpfs)
WARM_LIMIT_S = 120.0
PASSED_ON = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def base_env(target: Target, prefix: str) -> dict[str, str]:
    """The environment of a rank, built from nothing; `prefix` holds the interpreter's `bin`."""
    threads = str(target.threads_per_rank)
    env = {
        "PATH": f"{prefix}/bin:/usr/local/cuda/bin:/usr/bin:/bin",
        "HOME": "/home/rank",
        "TMPDIR": "/tmp",  # noqa: S108 (the sandbox's own tmpfs)
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_EXTENSIONS_DIR": "/tmp/torch_extensions",  # noqa: S108
        "GLOO_SOCKET_IFNAME": "lo",
        "MAX_JOBS": "2",
    }
    env.update({key: os.environ[key] for key in PASSED_ON if key in os.environ})
    env.update(target.env)
    if target.device == "cuda":
        env.update(_card_env(target))
    return env


def _card_env(target: Target) -> dict[str, str]:
    """Where the driver's libraries lie, our NCCL, and the job's own MPS daemon (`PKB_MPS=0` leaves it out)."""
    env = {}
    folders = [name for name in os.environ.get("LD_LIBRARY_PATH", "").split(":") if name.startswith("/usr/")]
    if folders:
        env["LD_LIBRARY_PATH"] = ":".join(folders)
    if nccl_library() is not None:
        env["LD_PRELOAD"] = NCCL_INSIDE
    if target.data.get("mps") and os.environ.get("PKB_MPS") != "0":
        env.update(CUDA_MPS_PIPE_DIRECTORY=MPS_FOLDER, CUDA_MPS_LOG_DIRECTORY=MPS_FOLDER)
    return env


def nccl_library() -> Path | None:
    """The NCCL that takes the place of the wheel's (several ranks on a card need 2.30 or newer)."""
    path = os.environ.get("PKB_NCCL_LIBRARY")
    return Path(path) if path else None


def card_nodes(target: Target) -> list[str]:
    """The device nodes that a job on cards needs, and no others."""
    if target.device == "cpu":
        return []
    cards = sorted(set(target.cards or ()))
    names = [*(f"nvidia{card}" for card in cards), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
    return [f"/dev/{name}" for name in names if Path(f"/dev/{name}").exists()]


class Template:
    """One waiting template. `isolated` False runs it without a sandbox (bundled samples only)."""

    def __init__(self, target: Target, name: str, *, isolated: bool = True) -> None:
        self.target = target
        self.isolated = isolated
        self.control, theirs = channel()
        try:
            self.box = self._box(name, theirs) if isolated else PlainBox(name)
            self._lay_out()
            if isinstance(self.box, PlainBox):
                self.box.start(theirs.fileno(), base_env(target, sys.prefix))
            else:
                self.box.start()
        finally:
            theirs.close()
        self.versions: dict[str, Any] | None = None

    def _box(self, name: str, theirs: socket.socket) -> Sandbox:
        limits = self.target.limits
        binds: dict[str | Path, str] = {}
        spec = SandboxSpec(
            argv=[python_inside(), "-I", "/opt/pkb/rank/template.py", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            ro_binds=binds,
            env=base_env(self.target, str(Path(python_inside()).parent.parent)),
            memory_bytes=limits["memory_bytes"],
            pids_max=limits["pids"],
            tmp_bytes=limits["tmp_bytes"],
            shm_bytes=limits["shm_bytes"],
            name=name,
            devices=card_nodes(self.target),
        )
        box = Sandbox(spec)
        if self.target.device == "cuda" and (library := nccl_library()) is not None:
            binds[library] = NCCL_INSIDE
        binds[str(box.folder / "rank")] = "/opt/pkb/rank"
        binds[str(box.folder / "job")] = "/job"
        return box

    def _lay_out(self) -> None:
        """The shim and an empty job folder, readable for the job whatever our umask is."""
        shutil.copytree(RANK_CODE, self.box.folder / "rank", ignore=shutil.ignore_patterns("__pycache__"))
        (self.box.folder / "job").mkdir(mode=0o755)
        for path in [self.box.folder, *self.box.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    @property
    def job_folder(self) -> Path:
        """The host side of /job."""
        return self.box.folder / "job"

    def put(self, name: str, content: bytes) -> None:
        """Place a file in the job's read-only folder."""
        path = self.job_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        for made in (path, *path.parents):
            if made == self.job_folder:
                break
            made.chmod(0o755 if made.is_dir() else 0o644)

    def ready(self, wait: float = 0.0) -> bool:
        """Whether the template has finished its imports. JudgeFault when it died."""
        if self.versions is None and select.select([self.control], [], [], wait)[0]:
            data = self.control.recv(4096)
            if not data:
                raise JudgeFault(f"the sandbox ended while it started: {self._last_words()}")
            self.versions = json.loads(data)
            self._same_versions(self.versions)
        return self.versions is not None

    def _same_versions(self, inside: dict[str, Any]) -> None:
        """A wrong bind silently runs another Python; scores of it would be of another judge."""
        import torch  # here, so that templates can be started before a command imports it

        ours = {"python": platform.python_version(), "torch": torch.__version__}
        if {key: inside.get(key) for key in ours} != ours:
            raise JudgeFault(f"the sandbox runs {inside}, the supervisor {ours}")

    def wait(self) -> None:
        """Block until the template is warm. JudgeFault after two minutes."""
        deadline = time.monotonic() + WARM_LIMIT_S
        while not self.ready(1.0):
            if time.monotonic() > deadline:
                raise JudgeFault(f"no template after {WARM_LIMIT_S:.0f} s")

    def _last_words(self) -> str:
        self.box.kill()
        os.set_blocking(self.box.stderr.fileno(), False)
        return (self.box.stderr.read() or b"").decode(errors="replace").strip()[-2000:]

    def close(self) -> None:
        """End the sandbox and remove its traces."""
        try:
            self.box.kill()
        finally:
            self.control.close()
            self.box.close_streams()


class Pool:
    """Keeps `size` templates warm for one target."""

    def __init__(self, target: Target, size: int = 2, *, isolated: bool = True) -> None:
        self.target, self.size, self.isolated = target, size, isolated
        self._waiting: deque[Template] = deque()
        self._made = 0
        self.refill()

    @classmethod
    def begin(cls, target: str) -> Pool:
        """Templates for a command that has not imported torch yet: it takes both sides the same seconds."""
        return cls(load_target(target), isolated=host_grade().grade != "none")

    def refill(self) -> None:
        """Start templates until `size` are waiting or warming up."""
        while len(self._waiting) < self.size:
            self._made += 1
            name = f"{self.target.slug}-{self._made}"
            self._waiting.append(Template(self.target, name, isolated=self.isolated))

    def settle(self) -> None:
        """Wait until every template that was started is warm."""
        for template in self._waiting:
            template.wait()

    def take(self) -> Template:
        """A warm template; the caller owns it. Call `refill` when nothing is being timed."""
        template = self._waiting.popleft() if self._waiting else None
        if template is None:
            self.refill()
            template = self._waiting.popleft()
        try:
            template.wait()
        except BaseException:
            template.close()
            raise
        return template

    def close(self) -> None:
        while self._waiting:
            self._waiting.popleft().close()
