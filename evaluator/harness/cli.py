"""The command line of the judge, without the portal.

Exit status: 0 correct (gate or self-test passed, built, fit), 1 any other verdict, 2 usage, 3 a fault of ours.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.harness import arguments, replay, trialbuild
from evaluator.harness.errors import JudgeFault, NoSandbox
from evaluator.harness.sandbox import SandboxError
from problems import roofline
from problems.registry import (
    OFFICIAL_TARGET,
    Problem,
    UnknownProblem,
    all_problems,
    load_problem,
    load_target,
    target_names,
)

# What needs torch is imported by the command that uses it: a mistyped path is told at once.
if TYPE_CHECKING:
    from evaluator.harness.gate import GateReport
    from evaluator.harness.trustedranks import TrustedRanks


PROTOCOLS = ("check", "quick", "paper", "profile")


def _protocol(text: str) -> str:
    """A protocol by its name; `score` is what the site calls `paper`."""
    return "paper" if text == "score" else text


def _add_target(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(target_names())
    parser.add_argument(
        "--target", default=trialbuild.CPU_TARGET, help=f"one of {known}; default %(default)s"
    )


def _add_protocol(parser: argparse.ArgumentParser, choices: Sequence[str], default: str) -> None:
    told = "check: no times; quick: feedback; paper (or score, as the site calls it): as it is ranked"
    parser.add_argument(
        "--protocol",
        type=_protocol,
        choices=choices,
        default=default,
        help=told + ("; profile: with a trace" if "profile" in choices else "") + "; default %(default)s",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator.harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _register_score(commands)
    trialbuild.register(commands)
    replay.register(commands)
    _register_many(commands)
    _register_catalogue(commands)
    fit = commands.add_parser("health", help="tell whether the cards are sound and quiet now")
    _add_target(fit)
    fit.set_defaults(run=_health)
    test = commands.add_parser("selftest", help="prove that this host can work for a target")
    _add_target(test)
    test.add_argument("--json", type=Path, metavar="OUT", help="write what was found there")
    test.set_defaults(run=_selftest)
    return parser


def _register_score(commands: Any) -> None:
    score = commands.add_parser("score", help="score one file and print the verdict")
    score.add_argument("--problem", required=True, help="slug or number")
    score.add_argument("--solution", required=True, type=Path, help="a .py, or a .zip with solution.py")
    _add_target(score)
    score.add_argument("--size", help="default: the first size the target ranks")
    _add_protocol(score, PROTOCOLS, "quick")
    score.add_argument(
        "--trace", type=Path, metavar="OUT", help="with --protocol profile: write the trace there (.json.gz)"
    )
    score.add_argument("--json", type=Path, metavar="OUT", help="write the whole result there")
    score.add_argument("--seed", type=int, help="replay the values of an earlier run; default: drawn")
    score.add_argument("--quiet", action="store_true", help="do not print the stages")
    score.set_defaults(run=_score)


def _register_many(commands: Any) -> None:
    many = commands.add_parser("score-many", help="score the catalogue's references, or a folder of files")
    _add_target(many)
    source = many.add_mutually_exclusive_group()
    source.add_argument(
        "--folder", type=Path, help="files named N_slug_backend.py or .zip; default: the references"
    )
    source.add_argument(
        "--manifest", type=Path, help="files and the verdicts they must end with, as samples.toml"
    )
    many.add_argument(
        "--problem", action="append", help="only files for this one, slug or number; repeatable"
    )
    many.add_argument("--leave-out", action="append", metavar="SLUG", help="no file for this one; repeatable")
    many.add_argument("--size", help="default: the first size the target ranks")
    _add_protocol(many, PROTOCOLS[:3], "check")
    many.add_argument(
        "--workers",
        type=int,
        default=1,
        help="judges side by side (protocol check only); default %(default)s",
    )
    many.add_argument(
        "--limit", type=float, default=300.0, metavar="S", help="seconds per file; default %(default)s"
    )
    many.add_argument("--json", type=Path, metavar="OUT", help="write the results there, after every file")
    many.set_defaults(run=_many)


def _register_catalogue(commands: Any) -> None:
    check = commands.add_parser("gate", help="run the mutation gate of problems on gloo ranks")
    check.add_argument("--problem", action="append", help="slug or number; repeatable; default: all")
    check.add_argument("--world", type=int, default=4, help="number of ranks; default %(default)s")
    check.add_argument("--size", default="tiny", help="default %(default)s")
    check.add_argument("--seeds", type=int, default=20, help="default %(default)s")
    check.add_argument("--json", type=Path, metavar="OUT", help="write the reports there")
    check.set_defaults(run=_gate)
    table = commands.add_parser("table", help="print docs/problems.md")
    table.add_argument("--gate", type=Path, help="JSON of a gate run")
    table.add_argument("--scores", type=Path, help="JSON of a score-many run")
    table.add_argument("--note", default="", help="a sentence on how the scores were taken")
    table.set_defaults(run=_table)


def _gate(args: argparse.Namespace) -> int:
    from evaluator.harness.trustedranks import TrustedRanks

    names = args.problem or [problem.slug for problem in all_problems()]
    chosen = [load_problem(name) for name in names]
    failed = 0
    reports: list[dict[str, Any]] = []
    with TrustedRanks(args.world) as pool:
        for problem in chosen:
            if args.world not in problem.world_sizes:
                print(f"{problem.number:3} {problem.slug}: not defined for {args.world} ranks")
                continue
            report = _gate_one(problem, pool, args)
            reports.append(asdict(report))
            failed += not report.passed
    if args.json:
        args.json.write_text(json.dumps(reports, indent=1) + "\n")
    return 1 if failed else 0


def _table(args: argparse.Namespace) -> int:
    from evaluator.harness.table import render

    print(render(args.gate, args.scores, args.note), end="")
    return 0


def _gate_one(problem: Problem, pool: TrustedRanks, args: argparse.Namespace) -> GateReport:
    from evaluator.harness.gate import run_gate

    start = time.perf_counter()
    report = run_gate(problem, pool, size=args.size, seeds=args.seeds)
    official = load_target(OFFICIAL_TARGET)
    roofs = {
        size: f"{1e6 * roofline.roof_seconds(problem.times(size, official)):.4g} us" for size in problem.sizes
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
    return report


def _score(args: argparse.Namespace) -> int:
    from evaluator.harness.warm import Pool

    def say(stage: str, detail: dict[str, object]) -> None:
        print(f"… {stage} {' '.join(f'{k}={v}' for k, v in detail.items())}".rstrip(), file=sys.stderr)

    def keep(name: str, content: bytes) -> None:
        if args.trace and name == looking.TRACE:
            args.trace.write_bytes(content)

    try:
        with closing(Pool.begin(args.target)) as pool:
            # Only now, since it takes seconds: these import torch.
            from evaluator.harness import looking
            from evaluator.harness.judge import Judge

            with Judge(args.target, single=True, pool=pool) as judge:
                found = judge.score(
                    problem=args.problem,
                    solution=args.solution,
                    size=args.size,
                    protocol=args.protocol,
                    on_stage=None if args.quiet else say,
                    on_artifact=keep,
                    seed=args.seed,
                )
    except (JudgeFault, SandboxError) as error:
        print(f"fault of the judge: {error}", file=sys.stderr)
        return 3
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    _print_result(found)
    return 0 if found["verdict"] == "correct" else 1


def _many(args: argparse.Namespace) -> int:
    from evaluator.harness.many import Expected, score_many, to_score

    files, expected = to_score(
        target=args.target,
        folder=args.folder,
        manifest=args.manifest,
        problems=args.problem,
        left_out=args.leave_out,
    )
    began = time.perf_counter()
    rows = score_many(
        args.target,
        files,
        size=args.size,
        protocol=args.protocol,
        workers=args.workers,
        out=args.json,
        limit_s=args.limit,
    )
    counts: dict[str, int] = {}
    wrong = 0
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        wrong += not expected.get(row["file"], Expected()).met(row)
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{len(rows)} files in {time.perf_counter() - began:.0f} s: {told}; {wrong} not as expected")
    return 1 if wrong else 0


def _health(args: argparse.Namespace) -> int:
    from evaluator.harness.health import look

    target = load_target(args.target)
    if target.device == "cpu":
        print(f"{target.slug} has no cards: there is nothing to look at", file=sys.stderr)
    found = look(target)
    print(json.dumps(found.shown(), indent=1))
    return 1 if found.reasons else 0


def _selftest(args: argparse.Namespace) -> int:
    from evaluator.harness.selftest import run

    try:
        found = run(args.target)
    except (JudgeFault, SandboxError) as error:
        print(f"fault of the judge: {error}", file=sys.stderr)
        return 3
    for check in found["checks"]:
        print(f"{'ok    ' if check['ok'] else 'FAILED'} {check['name']}: {check['told']}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if found["ok"] else 1


def _print_result(found: dict[str, Any]) -> None:
    head = f"{found['problem']['slug']} on {found['target']} ({found['size']}, {found['protocol']})"
    print(f"{head}: {found['verdict']} [{found['code']}], isolation {found['isolation_grade']}")
    print(found["message"])
    timing = found["timing"]
    if timing:
        print(
            f"speedup {timing['speedup']:.3f} (95 % interval {timing['speedup_low']:.3f} to "
            f"{timing['speedup_high']:.3f}); yours {timing['solution_ms']:.3f} ms, reference "
            f"{timing['reference_ms']:.3f} ms (medians; the speedup is the median of paired ratios); "
            f"{timing['calls']} timed calls a side"
        )
    for row in found["findings"]:
        line = f"line {row['line']}: " if row["line"] else ""
        print(
            f"{row['title']}, {row['cost_us']:.0f} us ({row['share']:.0%} of the call). {line}{row['sentence']}"
        )
    for row in found["stacks"]:
        print(f"--- rank {row['rank']} waits in\n{row['text'].rstrip()}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        arguments.check(args)
        return int(args.run(args))
    except (UnknownProblem, ValueError, NoSandbox) as error:
        print(error.args[0] if error.args else error, file=sys.stderr)
        return 2
