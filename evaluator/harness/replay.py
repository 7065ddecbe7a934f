"""`replay RESULT.json --solution FILE`: the calls of a published result once more.

The seed of a result is drawn after the upload and published when the result is final; with it the
judge makes the very same arguments for every call. Times differ as any two measurements do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.harness.arguments import text_of
from evaluator.harness.errors import JudgeFault
from evaluator.harness.sandbox import SandboxError
from evaluator.harness.sandbox.logs import clean_text
from evaluator.harness.source import solution_files
from evaluator.harness.version import PROTOCOL_VERSION
from problems.registry import load_problem

LONGEST_WORD = 100
_WHERE = "save what `score --json` writes, or what /api/v1/submissions/ID/result/ answers"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is needed of a result to make its calls again."""

    problem: str
    revision: str
    target: str
    size: str
    protocol: str
    seed: int
    verdict: str
    code: str
    source_sha256: str
    harness_version: str
    noise_floor: float
    speedup: tuple[float, float, float] | None
    """With its interval, where it was timed."""


def read(text: str, size: str | None = None) -> Recorded:
    """From the judge's JSON or the portal's; `size` picks a cell of a result with several.

    Raises ValueError with what is missing.
    """
    try:
        whole = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"this is no JSON ({error}); {_WHERE}") from error
    whole = whole.get("result") or whole if isinstance(whole, dict) else whole
    if not isinstance(whole, dict) or whole.get("schema") != 1:
        raise ValueError(f"this is no result of the judge (schema 1); {_WHERE}")
    cells = [whole, *(cell for cell in whole.get("cells") or [] if isinstance(cell, dict))]
    found = next((cell for cell in cells if size in (None, cell.get("size"))), None)
    if found is None:
        raise ValueError(f"the result has no size {size!r}")
    try:
        timing = found.get("timing")
        seed = int(found["seeds"]["secret"])
        if seed < 0:
            raise ValueError(f"no run had the seed {seed}")
        return Recorded(
            problem=_word(found["problem"]["slug"]),
            revision=_word(found["problem"]["revision"]),
            target=_word(found["target"]),
            size=_word(found["size"]),
            protocol=_word(found["protocol"]),
            seed=seed,
            verdict=_word(found["verdict"]),
            code=_word(found["code"]),
            source_sha256=_word(found.get("source_sha256") or ""),
            harness_version=_word(found.get("harness_version") or ""),
            noise_floor=float((timing or {}).get("noise_floor") or 0.10),
            speedup=_speedup(timing) if timing else None,
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the result lacks what a replay needs ({error!r})") from error


def _word(value: Any) -> str:
    """A short word that is safe to print: anybody may have written the file."""
    return clean_text(str(value)[:LONGEST_WORD].encode("utf-8", "replace"))


def _speedup(timing: dict[str, Any]) -> tuple[float, float, float]:
    return float(timing["speedup"]), float(timing["speedup_low"]), float(timing["speedup_high"])


def differences(recorded: Recorded, solution: Path) -> list[str]:
    """Why the replay cannot be expected to show the same; empty when it should."""
    found = []
    revision = load_problem(recorded.problem).score_revision
    if revision != recorded.revision:
        found.append(f"the problem was revision {recorded.revision}, here it is {revision}: other calls")
    if recorded.harness_version != PROTOCOL_VERSION:
        found.append(f"the judge was protocol version {recorded.harness_version}, here {PROTOCOL_VERSION}")
    digest = hashlib.sha256(solution_files(solution)["solution.py"]).hexdigest()
    if recorded.source_sha256 and digest != recorded.source_sha256:
        found.append("the file is not the one that was judged: its SHA-256 differs")
    return found


def replay(recorded: Recorded, solution: Path) -> dict[str, Any]:
    """Judge `solution` on the recorded calls; the judge's result."""
    from evaluator.harness.judge import Judge

    with Judge(recorded.target, single=True) as judge:
        return judge.score(
            problem=recorded.problem,
            solution=solution,
            size=recorded.size,
            protocol=recorded.protocol,
            seed=recorded.seed,
            noise_floor=recorded.noise_floor,
        )


def told(name: str, verdict: str, code: str, speedup: tuple[float, float, float] | None) -> str:
    """One line for one of the two results."""
    line = f"{name}: {verdict} [{code}]"
    if speedup:
        line += ", speedup {:.3f} ({:.3f} to {:.3f})".format(*speedup)
    return line


def run(args: argparse.Namespace) -> int:
    """The command. 0: the same verdict and code, 1: another, 2: usage, 3: a fault of ours."""
    try:
        recorded = read(text_of(args.result), args.size)
    except ValueError as error:
        raise ValueError(f"{args.result}: {error}") from error
    for line in differences(recorded, args.solution):
        sys.stderr.write(f"note: {line}\n")
    try:
        again = replay(recorded, args.solution)
    except (JudgeFault, SandboxError) as error:
        sys.stderr.write(f"fault of the judge: {error}\n")
        return 3
    if args.json:
        args.json.write_text(json.dumps(again, indent=1) + "\n")
    same = (again["verdict"], again["code"]) == (recorded.verdict, recorded.code)
    timing = again["timing"]
    lines = [
        told("recorded", recorded.verdict, recorded.code, recorded.speedup),
        told("replayed", again["verdict"], again["code"], _speedup(timing) if timing else None),
        "the same verdict" if same else "ANOTHER VERDICT",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if same else 1


def register(commands: Any) -> None:
    """Add the command to the harness's command line."""
    parser = commands.add_parser("replay", help="judge a file on the calls of a published result")
    parser.add_argument("result", type=Path, metavar="RESULT.json")
    parser.add_argument("--solution", required=True, type=Path, help="the file that was judged")
    parser.add_argument("--size", help="which size of a result with several; default: the deciding one")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the new result there")
    parser.set_defaults(run=run)
