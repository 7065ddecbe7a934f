"""Where the time of a quick score goes, from the command and from a warm judge.

    python -m tests.bench.bench_score [--runs 5] [--out FILE.json]

Command: a fresh `python -m evaluator.harness score` to its JSON. Warm: a Judge that keeps templates, as
the worker does, from the call to the result. The aims on two quiet cores are 12 s and 4 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from evaluator.harness.judge import Judge
from evaluator.harness.result import environment
from evaluator.harness.samples import FOLDER
from tests.bench.report import tell

SOLUTION = FOLDER / "allreduce_gather_and_sum.py"
AIM_COMMAND_S, AIM_WARM_S = 12.0, 4.0


def command() -> dict[str, Any]:
    """One cold run of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "evaluator.harness", "score", "--problem", "allreduce", "--solution",
             str(SOLUTION), "--quiet", "--json", str(out)],
            check=True,
            capture_output=True,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        durations = json.loads(out.read_text())["durations"]
    return _row(seconds, durations)


def warm(judge: Judge) -> dict[str, Any]:
    """One score by a judge whose templates are ready."""
    began = time.perf_counter()
    found = judge.score(problem="allreduce", solution=SOLUTION, protocol="quick")
    return _row(time.perf_counter() - began, found["durations"])


def _row(seconds: float, durations: dict[str, float]) -> dict[str, Any]:
    stages = {name: round(value, 3) for name, value in durations.items()}
    return {
        "seconds": seconds,
        "stages": stages,
        "outside_stages": round(seconds - sum(durations.values()), 3),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of the whole and of every stage."""
    stages = {name for row in rows for name in row["stages"]}
    return {
        "median_s": round(median(row["seconds"] for row in rows), 2),
        "worst_s": round(max(row["seconds"] for row in rows), 2),
        "stages_s": {
            name: round(median(row["stages"].get(name, 0.0) for row in rows), 3) for name in sorted(stages)
        },
        "outside_stages_s": round(median(row["outside_stages"] for row in rows), 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_score", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    cold = [command() for _ in range(args.runs)]
    with Judge("cpu4") as judge:
        warm(judge)
        hot = []
        for _ in range(args.runs):
            # A worker's templates are warm when a job comes: what is measured is the job, not the wait.
            for template in judge._pool._waiting:
                template.wait()
            hot.append(warm(judge))
    report = {
        "environment": environment(),
        "load": load,
        "runs": args.runs,
        "command": {"aim_s": AIM_COMMAND_S, **summary(cold)},
        "warm": {"aim_s": AIM_WARM_S, **summary(hot)},
    }
    tell(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
