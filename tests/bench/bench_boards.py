"""How fast boards answer from a seeded database: gunicorn with two workers, eight readers.

First without the page cache: each answer is made from the database. Then with it (in Redis where there is a
redis-server, else in each process), against a view that only says hello behind the same middleware.

Run by hand: fill a database with ``manage.py seed_board`` and give its URL in DATABASE_URL.

    DATABASE_URL=postgres://…/pkb_seed python -m tests.bench.bench_boards [--requests 400] [--json out.json]

Exit status 1 when a limit of issue E is missed: 60 ms at the median and 150 ms at p99 uncached, half of
hello's rate cached.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
READERS = 8
WORKERS = 2
MEDIAN_MS, P99_MS, SHARE = 60.0, 150.0, 0.5


@dataclass(frozen=True)
class Line:
    """What one path took: times in milliseconds, rate per second, share of hello's rate.

    ``cpu_ms`` is processor time for each answer, of web and database processes and of the readers. Unlike the
    times it hardly depends on what else the machine does; times the readers over the cores it is about the median
    of a machine that does nothing else.
    """

    page: str
    path: str
    cached: bool
    requests: int
    median_ms: float
    p99_ms: float
    per_second: float
    kib: float
    cpu_ms: float
    of_hello: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the limits of the issue are kept; hello and the floor have none."""
        if self.page in ("hello", "health"):
            return True
        if self.cached:
            return self.of_hello is not None and self.of_hello >= SHARE
        return self.median_ms < MEDIAN_MS and self.p99_ms < P99_MS


@contextmanager
def running(command: list[str], env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours, ended afterwards."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


@dataclass(frozen=True)
class Site:
    """A running web server."""

    port: int
    master: int

    def processes(self) -> list[int]:
        """Its processes, and those that serve the database, where they run on this machine."""
        children = Path(f"/proc/{self.master}/task/{self.master}/children").read_text().split()
        return [self.master, *map(int, children), *backends()]


def backends() -> list[int]:
    """Processes of PostgreSQL that serve the database that is measured; none for another machine's."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        found = [pid for (pid,) in cursor.fetchall()]
    named = [Path(f"/proc/{pid}/comm") for pid in found]
    return [
        pid
        for pid, comm in zip(found, named, strict=True)
        if comm.exists() and "postgres" in comm.read_text()
    ]


def spent(processes: list[int]) -> float:
    """Seconds of processor time that processes have used, this one included."""
    ticks = 0
    for pid in processes:
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists():
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    own = os.times()
    return ticks / os.sysconf("SC_CLK_TCK") + own.user + own.system


@contextmanager
def server(port: int, **more: str) -> Iterator[Site]:
    """A web server as in production, on a port of this machine."""
    command = [sys.executable, "-m", "gunicorn", "portal.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.bench.settings",
        "LOG_LEVEL": "ERROR",
        "PKB_RATE_ANON": "1000000/min",
        "DATABASE_CONN_MAX_AGE": "3600",  # a process of the database that ends takes its count along
        **more,
    }
    with running([*command, "--workers", str(WORKERS)], env) as process:
        for _ in range(300):
            try:
                get(port, "/healthz")
                break
            except OSError:
                time.sleep(0.1)
        yield Site(port, process.pid)


def get(port: int, path: str) -> tuple[float, bytes]:
    """Seconds and body of one request over a connection of its own; a plain socket, to cost little itself."""
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        parts = []
        while part := connection.recv(262144):
            parts.append(part)
    seconds = time.perf_counter() - start
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        raise SystemExit(f"{path}: {head[:200].decode(errors='replace')}")
    return seconds, body


def measure(site: Site, page: str, path: str, requests: int, *, cached: bool) -> Line:
    """One path under eight readers, each asking again as soon as it was answered."""
    for _ in range(4 * WORKERS):
        get(site.port, path)
    processes = site.processes()
    before, start = spent(processes), time.perf_counter()
    with ThreadPoolExecutor(READERS) as pool:
        answers = list(pool.map(lambda _: get(site.port, path), range(requests)))
    wall = time.perf_counter() - start
    cpu = 1e3 * (spent(processes) - before) / requests
    times = sorted(1e3 * seconds for seconds, _ in answers)
    p99 = times[min(requests - 1, int(0.99 * requests))]
    size = len(answers[0][1]) / 1024
    return Line(page, path, cached, requests, statistics.median(times), p99, requests / wall, size, cpu)


def paths(port: int, target: str) -> dict[str, str]:
    """What is asked for: the boards, a model page, and their JSON."""
    rows = json.loads(get(port, f"/boards/models.json?target={target}")[1])["rows"]
    if not rows:
        raise SystemExit("The database holds no verified run: fill it with `manage.py seed_board`.")
    model = rows[0]["model_slug"]
    return {
        "model board": f"/boards/models/?target={target}",
        "model board, page 3": f"/boards/models/?target={target}&page=3",
        "model board, JSON": f"/boards/models.json?target={target}",
        "model board, API": f"/api/v1/leaderboards/{target}/models/",
        "problem board": f"/boards/{target}/allreduce/",
        "problem board, JSON": f"/boards/{target}/allreduce.json",
        "problem board, API": f"/api/v1/leaderboards/{target}/problems/allreduce/",
        "model page": f"/boards/models/{model}/?target={target}",
        "model page, JSON": f"/boards/models/{model}.json?target={target}",
        "index of problems": f"/boards/{target}/",
    }


def uncached(options: argparse.Namespace) -> list[Line]:
    """Every path without the page cache."""
    with server(options.port, PKB_PAGE_CACHE="0") as site:
        lines = [measure(site, "health", "/healthz", options.requests, cached=False)]
        for page, path in paths(site.port, options.target).items():
            lines.append(measure(site, page, path, options.requests, cached=False))
    return lines


def cached(options: argparse.Namespace) -> tuple[list[Line], str]:
    """Every path from the page cache, beside hello; and which cache it was."""
    with ExitStack() as stack:
        more = {"PKB_PAGE_CACHE": "1"}
        if redis := shutil.which("redis-server"):
            there = options.port + 1
            stack.enter_context(running([redis, "--port", str(there), "--save", "", "--bind", "127.0.0.1"]))
            more["CACHE_URL"] = f"redis://127.0.0.1:{there}/0"
        site = stack.enter_context(server(options.port, **more))
        many = 4 * options.requests
        hello = measure(site, "hello", "/hello/", many, cached=True)
        lines = [hello]
        for page, path in paths(site.port, options.target).items():
            line = measure(site, page, path, many, cached=True)
            lines.append(Line(**asdict(line) | {"of_hello": line.per_second / hello.per_second}))
    return lines, "Redis" if redis else "memory of each process"


def rows_of_database() -> dict[str, Any]:
    """How much lies in the database, and what it is."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.settings")
    import django

    django.setup()
    from django.db import connection

    from leaderboard.models import Score
    from portal.submissions.models import Entrant, Submission

    used = Submission.objects.order_by().values("target__slug").distinct()
    return {
        "vendor": connection.vendor,
        "version": connection.pg_version if connection.vendor == "postgresql" else None,
        "submissions": Submission.objects.count(),
        "scores": Score.objects.count(),
        "entrants": Entrant.objects.count(),
        "targets": sorted(used.values_list("target__slug", flat=True)),
    }


def environment() -> dict[str, Any]:
    """What it ran on, without names of machines or paths."""
    import django

    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "django": django.get_version(),
        "server": f"gunicorn, {WORKERS} sync workers",
        "readers": READERS,
    }


def table(lines: list[Line]) -> str:
    """The lines as text."""
    out = [f"{'page':22} {'median':>9} {'p99':>9} {'per s':>8} {'cpu':>8} {'KiB':>7} {'of hello':>9}  holds"]
    for line in lines:
        share = f"{line.of_hello:9.2f}" if line.of_hello is not None else " " * 9
        out.append(
            f"{line.page:22} {line.median_ms:6.1f} ms {line.p99_ms:6.1f} ms {line.per_second:8.1f} "
            f"{line.cpu_ms:5.1f} ms {line.kib:7.1f} {share}  {'yes' if line.holds else 'NO'}"
        )
    return "\n".join(out) + "\n"


def main() -> int:
    """Print both tables, write the JSON, and say whether every limit holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--target", default="h100x4")
    parser.add_argument("--port", type=int, default=8050)
    parser.add_argument("--json", default="", help="where to write the measurement")
    options = parser.parse_args()
    database = rows_of_database()
    first = uncached(options)
    sys.stdout.write(f"without the page cache\n{table(first)}\n")
    second, where = cached(options)
    sys.stdout.write(f"with the page cache, in {where}\n{table(second)}")
    held = all(line.holds for line in first + second)
    document = {
        "schema": 1,
        "command": f"python -m tests.bench.bench_boards --requests {options.requests} --target {options.target}",
        "environment": environment(),
        "database": database,
        "limits": {"median_ms": MEDIAN_MS, "p99_ms": P99_MS, "cached_share_of_hello": SHARE},
        "cache": where,
        "uncached": [asdict(line) | {"holds": line.holds} for line in first],
        "cached": [asdict(line) | {"holds": line.holds} for line in second],
        "holds": held,
    }
    if options.json:
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
