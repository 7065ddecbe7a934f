"""The command line of the harness: score, gate.

Exit status: 0 correct (or gate passed), 1 any other verdict, 2 usage, 3 a fault of ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from evaluator.harness import gate, trustedranks
from problems import roofline
from problems.registry import OFFICIAL_TARGET, Problem, UnknownProblem, all_problems, load_problem, load_target


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator.harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("gate", help="run the mutation gate of problems on gloo ranks")
    check.add_argument("--problem", action="append", help="slug or number; repeatable; default: all")
    check.add_argument("--world", type=int, default=4, help="number of ranks")
    check.add_argument("--size", default="tiny")
    check.add_argument("--seeds", type=int, default=20)
    return parser


def _gate(args: argparse.Namespace) -> int:
    names = args.problem or [problem.slug for problem in all_problems()]
    chosen = [load_problem(name) for name in names]
    failed = 0
    with trustedranks.TrustedRanks(args.world) as pool:
        for problem in chosen:
            if args.world not in problem.world_sizes:
                print(f"{problem.number:3} {problem.slug}: not defined for {args.world} ranks")
                continue
            failed += not _gate_one(problem, pool, args)
    return 1 if failed else 0


def _gate_one(problem: Problem, pool: trustedranks.TrustedRanks, args: argparse.Namespace) -> bool:
    start = time.perf_counter()
    report = gate.run_gate(problem, pool, size=args.size, seeds=args.seeds)
    official = load_target(OFFICIAL_TARGET)
    roofs = {
        size: f"{1e6 * roofline.roof_seconds(problem.times(size, official)):.4g} us"
        for size in problem.sizes
    }
    state = "passed" if report.passed else "FAILED"
    took = time.perf_counter() - start
    print(
        f"{problem.number:3} {problem.slug}: {state} in {took:.1f} s; reference error {report.margin:.3f} "
        f"of the tolerance; killed {', '.join(report.killed) or 'nothing'}; "
        f"waived {', '.join(report.waived) or 'none'}; {problem.bound}; roof {roofs}",
        flush=True,
    )
    for line in report.problems:
        print(f"    {line}", flush=True)
    return report.passed


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        return _gate(args)
    except UnknownProblem as error:
        print(error.args[0])
        return 2
