"""How far the supervisor's clock is from the ranks' own, on cpu4.

    python -m tests.bench.bench_clock [--problem allreduce --problem gemm_allreduce] [--out FILE.json]

The reference is scored against itself by the paper protocol. Per block of calls: the outside clock less
the time from the ranks' first start to their last end. The shim's copies lie inside that time and the
handshake (an empty turn) is what the score subtracts; both are told apart. The aim is 200 µs a block at
the median on two quiet cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from evaluator.harness.judge import Judge
from evaluator.harness.protocol import Timing
from evaluator.harness.result import environment
from evaluator.harness.run import Run
from problems.registry import load_problem
from tests.bench.report import tell

AIM_US = 200.0


def microseconds(values: list[float]) -> dict[str, float]:
    """Median and spread of some seconds, in µs."""
    cuts = quantiles(values, n=20)
    return {"median_us": _us(median(values)), "p5_us": _us(cuts[0]), "p95_us": _us(cuts[-1])}


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 1)


def measured(judge: Judge, slug: str) -> Timing:
    """The raw figures of one score of the reference against itself."""
    problem = load_problem(slug)
    run = Run(
        judge, problem, "tiny", "paper", {"solution.py": (problem.folder / "reference.py").read_bytes()},
        on_stage=None, on_artifact=None, should_stop=None, seed=None, noise_floor=1.0,
    )  # fmt: skip
    try:
        found = run.score()
    finally:
        run.close()
        judge.refill()
    if found["verdict"] != "correct" or run.session is None:
        raise SystemExit(f"{slug}: {found['verdict']}: {found['message']}")
    return run.session.timing


def row(timing: Timing) -> dict[str, Any]:
    """What is told of one problem."""
    return {
        "blocks": len(timing.outside_minus_ranks),
        "calls_per_block": timing.block,
        "outside_minus_ranks_per_block": microseconds(timing.outside_minus_ranks),
        "outside_minus_ranks_per_call_us": _us(median(timing.outside_minus_ranks) / timing.block),
        "handshake": microseconds(timing.handshakes),
        "copies_per_call": microseconds(timing.copies),
        "raw_call": microseconds(timing.reference_calls),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_clock", description=__doc__)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    with Judge("cpu4") as judge:
        rows = {slug: row(measured(judge, slug)) for slug in args.problem or ["allreduce", "gemm_allreduce"]}
    report = {"environment": environment(), "load": load, "aim_us_per_block": AIM_US, "problems": rows}
    tell(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
