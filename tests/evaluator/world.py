"""A whole small installation in a folder: database, broker, worker processes that can be killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parents[2]
_MIGRATED: list[bytes] = []
"""The SQLite file of the first world after its migrations; the next ones begin with it."""


class World:
    """Start it with ``with``; processes that are left are killed at its end, each by its own pid."""

    def __init__(self, folder: Path, *, broker: str = "filesystem://", **env: str) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PKB_VAR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "portal.settings.dev",
            "CELERY_BROKER_URL": broker,
            "PKB_JUDGE": "tests.evaluator.fake_judge.FakeJudge",
            "PKB_HEARTBEAT_S": "0.5",
            "PKB_LEASE_S": "3",
            "PKB_TICK_S": "1",
            "PKB_WATCH_S": "0.1",
            **env,
        }
        self._database = _own_database(self.env)
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> World:
        self._log = (self.folder / "worker.log").open("ab")
        if self._database is None and _MIGRATED:
            self._file.parent.mkdir(parents=True)
            self._file.write_bytes(_MIGRATED[0])
        self.driver = subprocess.Popen(
            [sys.executable, "-m", "tests.evaluator.driver"],
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask("setup")
        if self._database is None and not _MIGRATED:
            _MIGRATED.append(_copy_of(self._file))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(10)
        assert self.driver.stdin is not None
        self.driver.stdin.close()
        if self.driver.poll() is None:
            self.driver.kill()  # a test that failed may have left it in the middle of a wait
        self.driver.wait(10)
        self._log.close()
        if self._database is not None:
            _sql(self._database[0], f'DROP DATABASE IF EXISTS "{self._database[1]}" WITH (FORCE)')

    @property
    def sources(self) -> Path:
        """Where a worker keeps what it judges."""
        return self.folder / "var" / "run" / "sources"

    @property
    def _file(self) -> Path:
        return self.folder / "var" / "db.sqlite3"

    def ask(self, do: str, **arguments: Any) -> Any:
        """Have the driver do something and return its answer."""
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        self.driver.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.driver.stdin.flush()
        line = self.driver.stdout.readline()
        if not line:
            raise AssertionError(f"the driver died at {do}")
        return json.loads(line)

    def start_worker(self, name: str = "host-a", *, target: str = "cpu4") -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "manage.py", "evaluator_worker", "--target", target, "--name", name],
            cwd=ROOT,
            env=self.env,
            stdout=self._log,
            stderr=self._log,
        )
        self.workers.append(worker)
        return worker

    def log(self) -> str:
        """What the workers printed so far; put it into assertion messages."""
        return (self.folder / "worker.log").read_text()[-6000:]

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL: nothing of ours runs in the process after this."""
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(10)

    def until(self, path: Path, timeout_s: float = 30) -> None:
        """Wait until a file exists."""
        pause = threading.Event()
        for _ in range(int(timeout_s / 0.02)):
            if path.exists():
                return
            pause.wait(0.02)
        raise AssertionError(f"{path.name} did not appear in {timeout_s} s\n{self.log()}")


def _copy_of(file: Path) -> bytes:
    """A database as one file, with what its write-ahead log still holds."""
    with closing(sqlite3.connect(file)) as source:
        return source.serialize()


def _own_database(env: dict[str, str]) -> tuple[str, str] | None:
    """Give the world a database of its own on the PostgreSQL server that DATABASE_URL names, if any."""
    url = env.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        return None
    name = f"pkb_world_{os.getpid()}_{os.urandom(3).hex()}"
    with suppress(KeyError):
        del env["PGDATABASE"]
    _sql(url, f'CREATE DATABASE "{name}"')
    env["DATABASE_URL"] = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    return url, name


def _sql(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(statement)  # type: ignore[call-overload]
