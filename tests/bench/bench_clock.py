"""How far the supervisor's clock is from the ranks' own, on cpu4.

    python -m tests.bench.bench_clock [--problem allreduce --problem gemm_allreduce] [--out FILE.json]

The reference is scored against itself by the paper protocol. Per block of calls: the outside clock less
the time from the ranks' first start (the first rank runs again) to their last end (its outputs are in the slot). That
gap has two ends: *before* the first start (thaw and wake-up of the first rank) and *after* the last end (the answer
written, the supervisor woken). The handshake, an empty turn, holds all of it; the score subtracts it, so what counts of
a gap is what is `beyond_the_handshake`. What the shim does within the ranks' time, the message read and the arguments
made, and the outputs copied, is told apart. The aim is 200 µs at the median on two quiet cores: every call of a block
is revealed by itself and has its own gap.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from unittest.mock import patch

from evaluator.harness.job import Job, Turn
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


class Ends(NamedTuple):
    """Seconds of the gap of one call, at either end."""

    before: float
    after: float


@contextmanager
def noted() -> Iterator[list[Ends]]:
    """Both ends of the gap of every call made in the block; the ranks' clock is the supervisor's, the monotonic one."""
    found: list[Ends] = []
    call = Job.call

    def notes(job: Job, *args: Any) -> Turn:
        turn = call(job, *args)
        told = [spans for spans in turn.spans if spans is not None]
        if len(told) == len(turn.spans):
            start = job._woken - turn.seconds
            first, last = min(s.woken for s in told) / 1e9, max(s.ended for s in told) / 1e9
            found.append(Ends(first - start, job._woken - last))
        return turn

    with patch.object(Job, "call", notes):
        yield found


def measured(judge: Judge, slug: str) -> tuple[Timing, list[Ends]]:
    """The raw figures of one score of the reference against itself, and the ends of every call's gap."""
    problem = load_problem(slug)
    run = Run(
        judge, problem, "tiny", "paper", {"solution.py": (problem.folder / "reference.py").read_bytes()},
        on_stage=None, on_artifact=None, should_stop=None, seed=None, noise_floor=1.0,
    )  # fmt: skip
    try:
        with noted() as ends:
            found = run.score()
    finally:
        run.close()
        judge.refill()
    if found["verdict"] != "correct" or run.session is None:
        raise SystemExit(f"{slug}: {found['verdict']}: {found['message']}")
    return run.session.timing, ends


def row(timing: Timing, ends: list[Ends]) -> dict[str, Any]:
    """What is told of one problem."""
    gap = median(timing.outside_minus_ranks) / timing.block
    return {
        "blocks": len(timing.outside_minus_ranks),
        "calls_per_block": timing.block,
        "outside_minus_ranks_per_block": microseconds(timing.outside_minus_ranks),
        "outside_minus_ranks_per_call_us": _us(gap),
        "before_the_first_start": microseconds([end.before for end in ends]),
        "after_the_last_end": microseconds([end.after for end in ends]),
        "beyond_the_handshake_per_call_us": _us(gap - timing.handshake),
        "handshake": microseconds(timing.handshakes),
        "message_and_arguments_per_call": microseconds(timing.arguments),
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
        rows = {slug: row(*measured(judge, slug)) for slug in args.problem or ["allreduce", "gemm_allreduce"]}
    report = {"environment": environment(), "load": load, "aim_us_per_block": AIM_US, "problems": rows}
    tell(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
