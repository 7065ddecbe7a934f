"""`build --solution FILE --target h100x4`: compile what a file builds at import, as the target's hosts do, cardless.

The file is imported on CPU ranks where builds are only recorded; then every unit is compiled in the build sandbox for
the target's architecture. Whoever writes CUDA sees the compiler's first error, registers and spills before a host does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluator.diagnose.mechanisms import TITLES, classify
from evaluator.harness.errors import JudgeFault
from evaluator.harness.sandbox import SandboxError
from problems.registry import OFFICIAL_TARGET, target_names

CPU_TARGET = "cpu4"
LONGEST_NAME = 160
DEMANGLE_LIMIT_S = 10.0
NOTHING = "This file builds nothing when it is imported."
NOT_IMPORTED = "The file cannot be imported on a CPU, so what it builds is not known here."
AFTERWARDS = " After that its import ended with {}, as it may on a CPU: builds were only noted down."
NO_NVCC = (
    "CUDA sources need nvcc, and this machine has none. On Linux `make setup` installs one beside torch; a toolkit in "
    "/usr/local/cuda does as well."
)


def tried(target: str, solution: Path, problem: str) -> dict[str, Any]:
    """{ok, code, message, line, log, seconds, units: [{name, seconds, cached, kernels, mechanisms}]}.

    Raises JudgeFault where nothing can be built apart: without a sandbox, or CUDA without nvcc.
    """
    from evaluator.harness import ahead, verdict
    from evaluator.harness.builds import Builder, BuildFailed, check_unit, program, wants_cards
    from evaluator.harness.judge import Judge
    from evaluator.harness.reports import JobFailed
    from evaluator.harness.run import factories_of
    from evaluator.harness.source import solution_files
    from problems.registry import load_problem, load_target

    chosen, aim = load_problem(problem), load_target(target)
    files = {**solution_files(solution), **factories_of(chosen)}
    with Judge(CPU_TARGET, warm=1, single=True) as judge:
        if judge.grade == "none":
            raise JudgeFault(f"nothing is built without a sandbox on this machine. {judge.host.fix}")
        try:
            units, note = ahead.record(judge.take(), chosen, files)
        except JobFailed as failure:
            return _refused(verdict.from_failure(failure))
    if note and not units:
        return _refused(
            verdict.Verdict("build_error", "build_error.not_imported", f"{NOT_IMPORTED} It ended with {note}")
        )
    try:
        if program("nvcc") is None and aim.device == "cuda" and any(map(wants_cards, map(check_unit, units))):
            raise JudgeFault(NO_NVCC)
        _, built = Builder(aim).build(units, float(aim.data["deadlines"]["build_s"]), files=files)
    except BuildFailed as failure:
        return _refused(verdict.from_build(failure, files["solution.py"].decode(errors="replace")))
    return {
        "ok": True,
        "code": "built" if units else "nothing",
        "message": (f"Built for {aim.slug}." if units else NOTHING)
        + (AFTERWARDS.format(note) if note else ""),
        "line": None,
        "log": "",
        "seconds": built.seconds,
        "units": [_told(row, facts) for row, facts in zip(built.units, built.facts, strict=True)],
    }


def _refused(found: Any) -> dict[str, Any]:
    words = {"code": found.code, "message": found.message, "line": found.first_line, "log": found.log}
    return {"ok": False, **words, "seconds": None, "units": []}


def _told(row: dict[str, Any], facts: Any) -> dict[str, Any]:
    found = classify(sass=facts.sass, ptx=facts.ptx, imports=facts.imports).mechanisms
    moves = [{"name": one.name, "certain": one.certain} for one in found]
    return {**row, "kernels": facts.kernels(), "mechanisms": moves}


def _demangled(names: list[str]) -> dict[str, str]:
    """Name -> as it is written in the source, by c++filt; as it was where there is none."""
    from evaluator.harness.builds import program

    tool = program("c++filt")
    try:
        if tool is None or not names:
            raise FileNotFoundError
        said = subprocess.run(
            [tool],
            input="\n".join(names),
            capture_output=True,
            text=True,
            check=True,
            timeout=DEMANGLE_LIMIT_S,
        )
        return dict(zip(names, said.stdout.splitlines(), strict=True))
    except (OSError, subprocess.SubprocessError, ValueError):
        return {name: name for name in names}


def lines(found: dict[str, Any]) -> list[str]:
    """What is printed: the verdict, then the compiler's words or the kernels."""
    told = [found["message"]]
    readable = _demangled([row["kernel"] for unit in found["units"] for row in unit["kernels"]])
    for unit in found["units"]:
        kept = "from the cache" if unit["cached"] else f"{unit['seconds']:.1f} s"
        told.append(f"{unit['name']} ({kept})")
        for row in unit["kernels"]:
            spills = row.get("spill_store_bytes", 0) + row.get("spill_load_bytes", 0)
            used = f"{row.get('registers', '?')} registers, {spills} bytes spilled"
            shared = f"{row.get('stack_bytes', 0)} of stack, {row.get('shared_bytes', 0)} of shared memory"
            told.append(f"  {readable[row['kernel']][:LONGEST_NAME]} ({row['arch']}): {used}, {shared}")
        moves = [
            TITLES[one["name"]] + ("" if one["certain"] else " (possibly)") for one in unit["mechanisms"]
        ]
        told += [f"  moves data by: {', '.join(moves)}"] if moves else []
    return [*told, found["log"].rstrip()] if found["log"] else told


def run(args: argparse.Namespace) -> int:
    """The command. 0: built, 1: not, 2: usage, 3: a fault of ours."""
    try:
        found = tried(args.target, args.solution, args.problem)
    except (JudgeFault, SandboxError) as error:
        sys.stderr.write(f"cannot build here: {error}\n")
        return 3
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write("\n".join(lines(found)) + "\n")
    return 0 if found["ok"] else 1


def register(commands: Any) -> None:
    """Add the command to the harness's command line."""
    parser = commands.add_parser("build", help="compile what a file builds, for a target, without a card")
    parser.add_argument("--solution", required=True, type=Path, help="a .py, or a .zip with solution.py")
    parser.add_argument(
        "--target",
        default=OFFICIAL_TARGET,
        help=f"whose architecture to compile for: {', '.join(target_names())}; default %(default)s",
    )
    parser.add_argument(
        "--problem",
        default="allreduce",
        help="slug or number, for a file that imports the problem's factories; default %(default)s",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write what came out there")
    parser.set_defaults(run=run)
