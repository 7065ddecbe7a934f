"""Our CUDA samples at the sizes of the paper's case studies, each against its reference on real cards.

    python -m tests.bench.bench_case_studies [--target h200x2] [--only hyena] [--protocol quick] [--out FILE.json]

The catalogue's sizes are not the studies': each study brings its own, and the judge scores the sample there as it
scores any file. Sizes are per rank as on the problem's page. `published` is the paper's speedup on four H100, not
measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluator.harness.errors import JudgeFault
from evaluator.harness.judge import Judge
from evaluator.harness.result import environment
from evaluator.harness.run import Run
from evaluator.harness.samples import all_samples
from evaluator.harness.source import solution_files
from problems.registry import Problem, load_problem

ROWS = 1024
"""Elements of a row of the message sizes, bfloat16."""


@dataclass(frozen=True)
class Study:
    """One sample at one size."""

    name: str
    file: str
    size: dict[str, int]
    published: float | None = None


def studies(ranks: int) -> list[Study]:
    """What is measured on so many ranks."""
    vocab, hyena = "vocab_parallel_log_prob_push_cuda.py", "hyena_forward_packed_cuda.py"
    sam3 = "sam3_iou_bits_cuda.py"
    found = [
        Study("ulysses T=1024", "ulysses_qkv_push_cuda.py", {"B": 1, "T": 1024, "h": 32, "d": 128}, 3.73),
        Study("log-probability l=1024", vocab, {"B": 8, "T": 1024, "V": 512}, 1.28),
        Study("log-probability l=1024, wide", vocab, {"B": 1, "T": 1024, "V": 65536}),
        Study("hyena l=512", hyena, _hyena(512, ranks), 3.55),
        Study("hyena l=2048", hyena, _hyena(2048, ranks)),
        Study("hyena l=8192", hyena, _hyena(8192, ranks), 0.70),
        Study("sam3 16 objects", sam3, {"c": 16 // ranks, "px": 65536}, 1.38),
        Study("sam3 256 objects", sam3, {"c": 256 // ranks, "px": 65536}, 1.03),
    ]
    for rows in (2, 32, 512, 8192):
        for slug, file in (
            ("allgather", "allgather_vector_pull_cuda.py"),
            ("scatter", "scatter_vector_push_cuda.py"),
        ):
            found.append(Study(f"{slug} {2 * ROWS * rows >> 10} KiB", file, {"M": rows, "N": ROWS}))
    return found


def _hyena(length: int, ranks: int) -> dict[str, int]:
    """The catalogue's channels and filter, which is never longer than the sequence."""
    return {"Bt": 1, "C": 1024, "l": length, "F": min(4096, ranks * length)}


def sized(problem: Problem, size: dict[str, int]) -> Problem:
    """The problem with the study's size in the place of its default."""
    sizes = {**problem.data["sizes"], "default": size}
    return replace(problem, data={**problem.data, "sizes": sizes})


def measured(judge: Judge, study: Study, protocol: str) -> dict[str, Any]:
    """One row: verdict and figures, times in µs per call."""
    sample = next(sample for sample in all_samples(None) if sample.file == study.file)
    run = Run(
        judge, sized(load_problem(sample.problem), study.size), "default", protocol, solution_files(sample.path),
        on_stage=None, on_artifact=None, should_stop=None, seed=None, noise_floor=0.10,
    )  # fmt: skip
    began = time.perf_counter()
    try:
        found = run.score()
    except JudgeFault as fault:
        found = {"verdict": "infra_error", "message": str(fault)[:500]}
    finally:
        run.close()
        judge.refill()
    row = {"study": study.name, "file": study.file, "size": study.size, "published": study.published}
    row |= {"verdict": found["verdict"], "wall_s": round(time.perf_counter() - began, 1)}
    if timing := found.get("timing"):
        card = timing["card"]
        row |= {key: timing[key] for key in ("speedup", "speedup_low", "speedup_high")}
        row["flags"] = found["flags"]
        for side in ("reference", "solution"):
            row[f"{side}_stream_us"] = 1e3 * card[f"{side}_stream_ms"] - 1e3 * card["stream_cost_ms"]
            row[f"{side}_gate_us"] = 1e3 * card[f"{side}_gate_ms"] - 1e3 * card["gate_cost_ms"]
        row["on_the_card"] = card["on_the_card"]
    else:
        row["message"] = found.get("message")
    return row


def main() -> int:
    """Say each row as it is known, and keep all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="h200x2")
    parser.add_argument("--only", action="append", help="part of a study's name; repeatable")
    parser.add_argument("--protocol", default="quick", choices=["quick", "paper"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    report = {
        "command": " ".join(["python -m tests.bench.bench_case_studies", *sys.argv[1:]]),
        "environment": environment(),
        "rows": rows,
    }
    with Judge(args.target) as judge:
        for study in studies(judge.target.ranks):
            if any(part in study.name for part in args.only or [""]):
                rows.append(measured(judge, study, args.protocol))
                sys.stdout.write(json.dumps(rows[-1]) + "\n")
                sys.stdout.flush()
                if args.out is not None:  # a run that is cut short leaves what it found
                    args.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
