"""A job without isolation, for hosts that have none: bundled samples only (grade `none`).

The same surface as `Sandbox`, as far as the judge uses it. No freezer, no limits, no namespaces:
the processes are merely recorded, so that `kill`, or the worker after one that died, ends them all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from evaluator.harness.sandbox import UsageReport, names
from evaluator.harness.sandbox.births import Birth
from evaluator.harness.sandbox.box import KILL_LIMIT_S


class PlainBox:
    """A template started as an ordinary child process in a temporary folder."""

    def __init__(self, name: str) -> None:
        host, lease = names.default_host_id(), names.own_lease()
        self.name = names.job_name(host, lease, name)
        self._birth = Birth(names.hold_lease(host, lease), self.name)
        self.marks = self._birth.marks
        """Part of the environment of everything that runs in it."""
        # Not in the run folder: extensions are loaded from here, and /run may forbid that.
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}."))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, control_fd: int, env: dict[str, str]) -> None:
        """Spawn the template with the control socket and the given environment."""
        work = self.folder / "work"
        work.mkdir()
        env = {**env, "HOME": str(work), "TMPDIR": str(work), "TORCH_EXTENSIONS_DIR": str(work / "ext")}
        self._birth.open()
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(self.folder / "rank" / "template.py"), str(control_fd)],
            pass_fds=(control_fd,),
            env={**env, **self.marks},
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._birth.outermost(self._process.pid)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process

    @property
    def stdout(self) -> IO[bytes]:
        stream = self._started().stdout
        assert stream is not None
        return stream

    @property
    def stderr(self) -> IO[bytes]:
        stream = self._started().stderr
        assert stream is not None
        return stream

    def freeze(self) -> float:
        """No freezer here; the grade says so."""
        return 0.0

    def thaw(self) -> float:
        return 0.0

    def pids(self) -> list[int]:
        return []

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def oom_killed(self) -> bool:
        return False

    def cpu_now(self) -> None:
        """Nobody counts it here."""

    def memory_now(self) -> None:
        """Nobody counts it here."""

    def usage(self) -> UsageReport:
        return UsageReport()

    def kill(self) -> UsageReport:
        """End the processes and remove the folder. Idempotent. KillFailed when 10 s bring none down."""
        self._birth.end(KILL_LIMIT_S)
        if self._process is not None:
            self._process.wait()
        self._birth.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
        return UsageReport()

    def close_streams(self) -> None:
        if self._process is not None:
            self.stdout.close()
            self.stderr.close()
