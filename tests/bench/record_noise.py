"""Record how long the same call takes, again and again, under the real judge: noise to test statistics on.

    python -m tests.bench.record_noise [--calls 2000] [--problem SLUG …] [--out tests/data/noise_cpu4.json]

Every call has its own secret inputs and its own turn of the freezer, as in a score; only the reference
runs. The series keeps the machine's drift, its neighbours and their rhythm, which is what makes
successive times depend on each other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from evaluator.harness.judge import Judge
from evaluator.harness.protocol import Session
from evaluator.harness.result import environment
from evaluator.harness.run import Run
from evaluator.harness.source import solution_files
from problems.registry import load_problem

PROBLEMS = ("allreduce", "tp_rms_norm", "gather")
OUT = Path(__file__).resolve().parents[1] / "data" / "noise_cpu4.json"
FRESH = 16
"""Distinct calls that take turns: making new inputs for thousands would be most of the time."""


class Recording(Run):
    """A run that times the reference alone, call after call."""

    calls = 0
    series: list[float]

    def _measure(self, session: Session) -> None:
        self.series = []
        for index in range(self.calls + FRESH):
            seconds = session._net(session.run_reference(self.cases.call(index % FRESH)))
            if index >= FRESH:  # the first round is warm-up
                self.series.append(seconds)


def record(judge: Judge, slug: str, calls: int) -> list[float]:
    """Seconds per call, net of the handshake, in the order of measurement."""
    problem = load_problem(slug)
    files = solution_files(problem.folder / "reference.py")
    run = Recording(
        judge,
        problem,
        judge.target.cells[0],
        "quick",
        files,
        on_stage=None,
        should_stop=None,
        seed=None,
        noise_floor=0.10,
    )
    run.calls = calls
    try:
        run.score()
    finally:
        run.close()
        judge.refill()
    return run.series


def autocorrelation(series: list[float], lag: int = 1) -> float:
    """Of the logarithms, at a lag."""
    logs = [math.log(value) for value in series]
    mean = sum(logs) / len(logs)
    away = [value - mean for value in logs]
    return sum(a * b for a, b in zip(away, away[lag:], strict=False)) / sum(a * a for a in away)


def main() -> int:
    """Record, print a summary, write the JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with Judge("cpu4") as judge:
        for slug in options.problem or PROBLEMS:
            before = os.getloadavg()[0]
            series = record(judge, slug, options.calls)
            found[slug] = {
                "load": [before, os.getloadavg()[0]],
                "autocorrelation_1": round(autocorrelation(series), 4),
                "autocorrelation_5": round(autocorrelation(series, 5), 4),
                "net_us": [round(1e6 * seconds, 1) for seconds in series],
            }
            sys.stdout.write(
                f"{slug}: median {sorted(found[slug]['net_us'])[len(series) // 2]:.0f} us, "
                f"autocorrelation {found[slug]['autocorrelation_1']:.2f}\n"
            )
            sys.stdout.flush()
    document = {
        "about": "Net time of one call of the reference on cpu4 at size tiny, microseconds, in order.",
        "script": "tests/bench/record_noise.py",
        "environment": environment(),
        "series": found,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
