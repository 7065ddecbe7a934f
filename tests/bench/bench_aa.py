"""The reference against itself: how often the 95 % interval of a quick score holds 1.

    python -m tests.bench.bench_aa [--runs 66] [--problem SLUG …] [--out docs/measurements/aa_cpu4.json]

Each run is a whole quick score, with fresh jobs and secret inputs, whose submission is the problem's own
reference. Runs go round the problems, so that a bad minute of the machine falls on all of them. Writes
after each run, so that an interrupted campaign is a shorter one. Exit 1 when less than 85 % cover 1.
Run it in a tree that nobody edits: ranks read the shim from disk at each start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from evaluator.harness.errors import JudgeFault
from evaluator.harness.judge import Judge
from evaluator.harness.result import environment
from problems.registry import load_problem

PROBLEMS = ("allreduce", "allgather", "reducescatter", "gather", "tp_rms_norm", "gemm_allreduce")
OUT = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "aa_cpu4.json"
NEEDED = 0.85


def one(judge: Judge, slug: str, protocol: str) -> dict[str, Any]:
    """One score of a reference against itself. A fault of ours is noted and is no run, as in the portal."""
    row: dict[str, Any] = {"problem": slug, "load": round(os.getloadavg()[0], 2)}
    began = time.perf_counter()
    try:
        solution = load_problem(slug).folder / "reference.py"
        found = judge.score(problem=slug, solution=solution, protocol=protocol)
    except JudgeFault as fault:
        return row | {"verdict": "fault", "fault": str(fault)[:300]}
    row |= {"verdict": found["verdict"], "seconds": round(time.perf_counter() - began, 1)}
    if timing := found["timing"]:
        row |= {name: round(timing[name], 4) for name in ("speedup", "speedup_low", "speedup_high")}
        row["reference_ms"] = round(timing["reference_ms"], 4)
        row["log_ratios"] = [round(math.log(a / b), 4) for a, b in timing["samples"]]
        row["covers"] = timing["speedup_low"] <= 1.0 <= timing["speedup_high"]
    return row


def dependence(rows: list[dict[str, Any]]) -> float | None:
    """How much a pair's log ratio tells of the next pair's in its run: 0 when the pairs are independent.

    Above 0, something stays with a job through its run, such as where its ranks sit; the interval of one
    run cannot see that, and covers less than it says.
    """
    products = squares = 0.0
    for row in rows:
        logs = row["log_ratios"]
        products += sum(a * b for a, b in itertools.pairwise(logs)) / max(1, len(logs) - 1)
        squares += sum(a * a for a in logs) / len(logs)
    return round(products / squares, 4) if squares else None


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage over all runs and by problem, and how far the medians are from 1."""
    timed = [row for row in rows if "covers" in row]
    away = sorted(abs(math.log(row["speedup"])) for row in timed)
    by_problem: dict[str, list[bool]] = {}
    for row in timed:
        by_problem.setdefault(row["problem"], []).append(row["covers"])
    return {
        "runs": len(rows),
        "timed": len(timed),
        "faults": sum(row["verdict"] == "fault" for row in rows),
        "not_correct": sum(row["verdict"] not in ("correct", "fault") for row in rows),
        "covering": sum(row["covers"] for row in timed),
        "share": round(sum(row["covers"] for row in timed) / max(1, len(timed)), 4),
        "needed": NEEDED,
        "pairs_depend": dependence(timed),
        "load": [
            min((row["load"] for row in rows), default=0),
            max((row["load"] for row in rows), default=0),
        ],
        "median_distance": round(math.expm1(away[len(away) // 2]), 4) if away else None,
        "p95_distance": round(math.expm1(away[math.ceil(0.95 * len(away)) - 1]), 4) if away else None,
        "by_problem": {slug: f"{sum(held)} of {len(held)}" for slug, held in sorted(by_problem.items())},
    }


def main() -> int:
    """Run the campaign, store it after each run, print the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=66)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--protocol", choices=("quick", "paper"), default="quick")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    slugs = options.problem or list(PROBLEMS)
    rows: list[dict[str, Any]] = []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with Judge("cpu4") as judge:
        timed = index = 0
        while timed < options.runs and index < 2 * options.runs:
            rows.append(one(judge, slugs[index % len(slugs)], options.protocol))
            document = {
                "about": "The reference against itself on cpu4 at size tiny; an interval should hold 1.",
                "script": "tests/bench/bench_aa.py",
                "protocol": options.protocol,
                "environment": environment(),
                "isolation_grade": judge.grade,
                "summary": summary(rows),
                "runs": rows,
            }
            options.out.write_text(json.dumps(document, indent=1) + "\n")
            index += 1
            timed += rows[-1]["verdict"] != "fault"
            sys.stdout.write(f"{timed}/{options.runs} {json.dumps(rows[-1])}\n")
            sys.stdout.flush()
    found = summary(rows)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0 if found["share"] >= NEEDED and found["not_correct"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
