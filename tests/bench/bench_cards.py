"""The clocks of timed cards: stream mode and the gate against a pair of CUDA events, and what each costs a call.

    python -m tests.bench.bench_cards [--target h200x2] [--json FILE.json]

A file that spins for 10 µs, 30 µs, 100 µs and 1 ms on every card is called by the judge's own job, 100 calls a batch:
in stream mode (the aim: within 3 % or 2 µs of the rank's events around the same calls; the handshake, an empty batch,
is told beside it) and under the gate. Then the
reference of `allreduce` in stream mode, with and without calls before the clock.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

import torch

from evaluator.harness import encode
from evaluator.harness.cardjob import Batch, CardJob, stage
from evaluator.harness.cases import Cases, slot_sizes
from evaluator.harness.judge import Judge
from evaluator.harness.result import environment
from problems.registry import load_problem

CALLS, WARM, TIMES = 100, 20, 9
SPIN_US = (10, 30, 100, 1000)
CYCLES = 8
"""Clock cycles that the file spins per element of its argument."""
SPINNER = f"""
import torch

def solution(tensor):
    torch.cuda._sleep({CYCLES} * tensor.numel())
    return tensor[:1]
"""


def started(judge: Judge, source: str, sizes: tuple[int, int], lanes: int) -> CardJob:
    """A job of `allreduce` with this file, its ranks ready."""
    job = CardJob(
        judge.take(),
        load_problem("allreduce"),
        "submission",
        {"solution.py": source.encode()},
        *sizes,
        lanes=lanes,
    )
    job.start(120.0)
    return job


def spun(job: CardJob, elements: int, calls: int) -> tuple[list[list[encode.Packed]], Any]:
    """`calls` calls of the spinner, packed and staged."""
    packed = [
        [encode.pack([torch.zeros(elements, dtype=torch.uint8)]) for _ in job.cards] for _ in range(calls)
    ]
    return packed, stage(packed, job.cards)


def say(row: dict[str, Any]) -> None:
    """One line as soon as it is known."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def middle(batches: list[Batch], what: str) -> float:
    """Median of a figure, µs per call."""
    return 1e6 * median(getattr(batch, what) for batch in batches)


def clocks(job: CardJob) -> list[dict[str, float]]:
    """One row per duration, µs per call."""
    packed, staged = spun(job, 100000, CALLS)
    for _ in range(2):
        first = job.stream(packed, staged, 60.0)
    cycles_per_us = CYCLES * 100000 / (1e6 * (first.device_s or 0.0))
    cost = middle([job.gate(packed, staged, 60.0, empty=True) for _ in range(TIMES)], "seconds")
    handshake = middle([job.stream(packed, staged, 60.0, empty=True) for _ in range(TIMES)], "seconds")
    rows = []
    for wanted in SPIN_US:
        packed, staged = spun(job, int(wanted * cycles_per_us / CYCLES), CALLS + WARM)
        streams = [job.stream(packed, staged, 60.0, warm=WARM) for _ in range(TIMES)]
        gates = [job.gate(packed[:CALLS], staged[:CALLS], 60.0) for _ in range(TIMES)]
        row = {
            "spin": float(wanted),
            "events": middle(streams, "device_s"),
            "stream": middle(streams, "seconds"),
            "handshake": handshake,
            "enqueue": middle(streams, "host_s"),
            "gate": middle(gates, "seconds"),
            "gate_cost": cost,
        }
        row["stream_less_events"] = row["stream"] - row["events"]
        row["net_less_events"] = row["stream_less_events"] - handshake
        row["gate_less_cost"] = row["gate"] - cost
        row["gate_step_cost"] = row["gate"] - row["events"]
        rows.append({name: round(value, 2) for name, value in row.items()})
        say(rows[-1])
    return rows


def launches(judge: Judge) -> list[dict[str, float]]:
    """Stream mode on the reference of `allreduce` at the default size, µs per call, by calls before the clock."""
    problem = load_problem("allreduce")
    cases = Cases(problem, "default", judge.target.ranks, device="cuda")
    sizes = slot_sizes(cases, [cases.answers(0)])
    job = started(judge, (problem.folder / "reference.py").read_text(), sizes, CALLS)
    rows = []
    try:
        calls = [call.packed for call in cases.many(1, 64)]
        staged = stage(calls, job.cards)
        for count, warm in ((16, 0), (24, 8), (32, 16), (64, 0), (64, 32)):
            batches = [job.stream(calls[:count], staged[:count], 60.0, warm=warm) for _ in range(TIMES)]
            row = {
                "timed": count - warm,
                "warm": warm,
                "stream": middle(batches, "seconds"),
                "lowest": 1e6 * min(batch.seconds for batch in batches),
                "highest": 1e6 * max(batch.seconds for batch in batches),
                "events": middle(batches, "device_s"),
                "enqueue": middle(batches, "host_s"),
            }
            rows.append({name: round(value, 2) for name, value in row.items()})
            say(rows[-1])
        gates = [job.gate(calls[:8], staged[:8], 60.0) for _ in range(TIMES)]
        say({"gate": round(middle(gates, "seconds"), 2)})
    finally:
        job.close()
    return rows


def main() -> int:
    """Print and keep the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="h200x2")
    parser.add_argument("--json", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    with Judge(args.target) as judge:
        job = started(judge, SPINNER, (1 << 19, 1 << 12), CALLS + WARM)
        try:
            rows = clocks(job)
        finally:
            job.close()
            judge.refill()
        found = {
            "clocks": rows,
            "launches": launches(judge),
            "environment": environment(),
        }
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
