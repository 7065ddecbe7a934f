"""A job without isolation, for hosts that have none: bundled samples only (grade `none`).

The same surface as `Sandbox`, as far as the judge uses it. No freezer, no limits, no namespaces:
the processes are merely a session of their own that `kill` ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from evaluator.harness.sandbox import UsageReport


class PlainBox:
    """A template started as an ordinary child process in a temporary folder."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"pkb-{name}-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, control_fd: int, env: dict[str, str]) -> None:
        """Spawn the template with the control socket and the given environment."""
        work = self.folder / "work"
        work.mkdir()
        env = {**env, "HOME": str(work), "TMPDIR": str(work), "TORCH_EXTENSIONS_DIR": str(work / "ext")}
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(self.folder / "rank" / "template.py"), str(control_fd)],
            pass_fds=(control_fd,),
            env=env,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

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

    def usage(self) -> UsageReport:
        return UsageReport()

    def kill(self) -> UsageReport:
        """End the session's processes and remove the folder."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        return UsageReport()

    def close_streams(self) -> None:
        if self._process is not None:
            self.stdout.close()
            self.stderr.close()
