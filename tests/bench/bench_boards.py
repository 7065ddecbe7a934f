"""How fast boards answer from a seeded database: gunicorn with two workers, eight readers, no cache.

Run by hand: fill a database with ``manage.py seed_board`` and give its URL in DATABASE_URL.

    DATABASE_URL=postgres://…/pkb_seed python -m tests.bench.bench_boards [--requests 200] [--target h100x4]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READERS = 8


@contextmanager
def server(port: int) -> Iterator[str]:
    """A web server as in production."""
    address = f"127.0.0.1:{port}"
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "portal.wsgi:application",
        "--bind",
        address,
        "--workers",
        "2",
    ]
    env = {**os.environ, "LOG_LEVEL": "ERROR", "PKB_RATE_ANON": "1000000/min"}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                get(f"http://{address}/healthz")
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(20)


def get(url: str) -> tuple[float, int]:
    """Seconds and bytes of one request."""
    start = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        size = len(answer.read())
    return time.perf_counter() - start, size


def first_model(base: str, target: str) -> str:
    """Slug of the model at the top of the board."""
    import json

    with urllib.request.urlopen(f"{base}/boards/models.json?target={target}", timeout=60) as answer:
        rows = json.load(answer)["rows"]
    if not rows:
        raise SystemExit("The database holds no verified run: fill it with `manage.py seed_board`.")
    return str(rows[0]["model_slug"])


def measure(url: str, requests: int) -> str:
    """Median, p99 and rate under eight readers, as one line."""
    get(url)
    start = time.perf_counter()
    with ThreadPoolExecutor(READERS) as pool:
        answers = list(pool.map(get, [url] * requests))
    wall = time.perf_counter() - start
    times = sorted(seconds for seconds, _ in answers)
    p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
    return (
        f"median {1e3 * statistics.median(times):7.1f} ms  p99 {1e3 * p99:7.1f} ms  "
        f"{requests / wall:6.1f} requests/s  {answers[0][1] / 1024:6.1f} KiB"
    )


def main() -> None:
    """Print one line per page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--target", default="h100x4")
    parser.add_argument("--port", type=int, default=8050)
    options = parser.parse_args()
    with server(options.port) as base:
        target = options.target
        model = first_model(base, target)
        paths = {
            "health (floor)": "/healthz",
            "model board": f"/boards/models/?target={target}",
            "model board, JSON": f"/boards/models.json?target={target}",
            "problem board": f"/boards/{target}/allreduce/",
            "problem board, JSON": f"/boards/{target}/allreduce.json",
            "target index": f"/boards/{target}/",
            "model page": f"/boards/models/{model}/?target={target}",
        }
        for name, path in paths.items():
            sys.stdout.write(f"{name:20} {measure(base + path, options.requests)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
