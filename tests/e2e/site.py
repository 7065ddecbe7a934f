"""A whole site in a folder: database, web server and, when wanted, one real evaluator."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """Return a port below the ephemeral range that nothing listens on."""
    for port in range(18200, 18400):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise RuntimeError("no free port")


class Site:
    """Start with `with`; every process it started is ended by its own pid."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.env = {
            **os.environ,
            "PKB_VAR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "portal.settings.dev",
            "DATABASE_URL": f"sqlite:///{folder / 'var' / 'db.sqlite3'}",
            "CELERY_BROKER_URL": "filesystem://localhost/",
            "PKB_RATE_ANON": "10000/min",
            "PKB_RATE_USER": "10000/min",
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Site":
        self.log = (self.folder / "site.log").open("ab")
        self.manage("migrate", "-v0")
        self.manage("sync_catalog")
        gunicorn = [
            sys.executable,
            "-m",
            "gunicorn",
            "portal.wsgi:application",
            "-b",
            f"127.0.0.1:{self.port}",
        ]
        self._start([*gunicorn, "--worker-class", "gthread", "--threads", "8", "--no-control-socket"])
        self._await_answer(60)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        self.log.close()

    def manage(self, *args: str) -> str:
        """Run one management command and return what it printed."""
        command = [sys.executable, "manage.py", *args]
        return subprocess.run(
            command, cwd=ROOT, env=self.env, check=True, stdout=subprocess.PIPE, stderr=self.log, text=True
        ).stdout

    def python(self, code: str) -> str:
        """Run code in a Django shell of the site."""
        return self.manage("shell", "-v0", "-c", code)

    def start_worker(self) -> None:
        """Start an evaluator for cpu4."""
        self._start(
            [sys.executable, "manage.py", "evaluator_worker", "--target", "cpu4", "--name", "e2e-host"]
        )

    def _start(self, command: list[str]) -> None:
        self.processes.append(
            subprocess.Popen(command, cwd=ROOT, env=self.env, stdout=self.log, stderr=subprocess.STDOUT)
        )

    def _await_answer(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.base}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)  # nothing tells us when a port opens
        raise TimeoutError(f"the site does not answer; see {self.folder / 'site.log'}")


def serious(violations: list[dict[str, Any]]) -> list[str]:
    """Return axe's serious and critical findings, and regions that sound the same, in one line each."""
    return [
        f"{v['id']}: {v['help']} at {[n['target'] for n in v['nodes']][:4]}"
        for v in violations
        if v["impact"] in ("serious", "critical") or v["id"] == "landmark-unique"
    ]
