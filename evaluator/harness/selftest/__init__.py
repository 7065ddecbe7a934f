"""The host self-test: what must hold before a host takes work for a target.

Everything is tried the way a submission would meet it: in the sandbox, through the judge. Operators run
`python -m evaluator.harness selftest --target NAME`; a host that fails is not to take work.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluator.harness.builds import program
from evaluator.harness.health import Health, look
from evaluator.harness.judge import Judge
from evaluator.harness.result import environment
from evaluator.harness.samples import all_samples
from evaluator.harness.sandbox import host_grade, self_check
from problems.registry import Target, load_problem, load_target

PROBE = Path(__file__).parent / "rates_probe.py"
LEAST_COPY, LEAST_MATRIX = 0.70, 0.55
"""Shares of a card's data-sheet peaks that a healthy one reaches (an H200 here: 0.90 and 0.80)."""


@dataclass(frozen=True)
class Check:
    """One thing that was tried, and what came out, in words for an operator."""

    name: str
    ok: bool
    told: str


def sandbox_checks(target: Target) -> list[Check]:
    """The sandbox holds, and jobs can be frozen and limited; boards of cards take fully isolated results only."""
    host = host_grade(fresh=True)
    enough = ("full", "partial") if target.device == "cpu" else ("full",)
    grade = Check("isolation grade", host.grade in enough, "; ".join([host.grade, *host.reasons]))
    if host.grade == "none":
        return [grade]
    inside = self_check(import_torch=True, fresh=True)
    told = "; ".join(inside.problems) or f"as it should be, looked at in {inside.seconds:.1f} s"
    return [grade, Check("sandbox from inside", inside.ok, told)]


def card_checks(target: Target, seen: Callable[[Target], Health] = look) -> list[Check]:
    """The cards are there, sound and quiet."""
    if target.device == "cpu":
        return []
    health = seen(target)
    cards = ", ".join(f"{card['index']}: {card['name']}, driver {card['driver']}" for card in health.cards)
    unread = f"; not readable: {', '.join(health.unread)}" if health.unread else ""
    return [Check("cards", not health.reasons, "; ".join(health.reasons or [cards]) + unread)]


def build_checks(target: Target, include: Path | None = None) -> list[Check]:
    """What extensions are compiled with is there: C++, Python's header, nvcc where there are cards."""
    header = (include or Path(sysconfig.get_path("include"))) / "Python.h"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    missing = []
    if program("c++") is None:
        missing.append("no c++: install g++")
    if not header.is_file():
        missing.append(
            f"{header} is missing, and every extension includes it: install python{version}-dev (Debian, Ubuntu) or "
            f"python{version}-devel (Fedora)"
        )
    if target.device == "cuda" and program("nvcc") is None:
        missing.append("no nvcc: install the CUDA toolkit in /usr/local/cuda")
    return [Check("what extensions are built with", not missing, "; ".join(missing) or f"c++, {header}")]


def _scored(judge: Judge, name: str, slug: str, path: Path, size: str) -> tuple[Check, dict[str, Any]]:
    found = judge.score(problem=slug, solution=path, size=size, protocol="check")
    ok = found["verdict"] == "correct"
    took = sum(found["durations"].values())
    return Check(name, ok, f"{found['verdict']} in {took:.1f} s" if ok else found["message"]), found


def rates(log: dict[str, str]) -> dict[str, float] | None:
    """What the probe printed, or None."""
    for text in log.values():
        found = re.search(r"^RATES (\{.*\})$", text, re.MULTILINE)
        if found:
            return {key: float(value) for key, value in json.loads(found[1]).items()}
    return None


def rate_checks(measured: dict[str, float] | None, target: Target) -> list[Check]:
    """Measured rates against the target's peaks. CPU targets have nominal peaks: there any rate will do."""
    if measured is None:
        return [Check("rates", False, "the probe printed none")]
    card = target.device == "cuda"
    kind = "bf16" if card else "fp32"
    plan = (
        ("copy", measured["copy_gbs"], float(target.data["memory_gbs"]), "GB/s", LEAST_COPY),
        (
            "matrix",
            measured["matrix_tflops"],
            float(target.data["peaks_tflops"][kind]),
            "TFLOP/s",
            LEAST_MATRIX,
        ),
    )
    checks = []
    for name, rate, peak, unit, least in plan:
        share = rate / peak
        told = f"{rate:.4g} {unit}, {share:.2f} of the target's {peak:g}"
        checks.append(Check(f"{name} rate", share >= least if card else rate > 0, told))
    return checks


def known_kernels(target: Target) -> list[tuple[str, str, Path]]:
    """(what it shows, problem, file) of files whose result is known."""
    plain = load_problem("allreduce").folder / "reference.py"
    found = [(f"{target.ranks} ranks join over {target.backend}", "allreduce", plain)]
    if target.device == "cuda":
        # The bundled kernels are kept for the one-card target; they run on any number of ranks up to eight.
        for sample in all_samples("h200x1"):
            if sample.problem in ("allreduce", "allgather"):
                told = f"built and run over symmetric memory: {sample.file}"
                found.append((told, sample.problem, sample.path))
    return found


def run(target_name: str, judge_of: Callable[[str], Judge] = Judge) -> dict[str, Any]:
    """All checks as plain JSON: {"ok", "target", "checks", "rates", "environment"}. Raises JudgeFault."""
    target = load_target(target_name)
    size = "tiny" if target.device == "cpu" else "default"
    checks = [*card_checks(target), *build_checks(target), *sandbox_checks(target)]
    measured = None
    told = [check for check in checks if check.name in ("cards", "sandbox from inside")]
    if all(check.ok for check in told) and "sandbox from inside" in {check.name for check in told}:
        with judge_of(target_name) as judge:
            for name, slug, path in known_kernels(target):
                checks.append(_scored(judge, name, slug, path, size)[0])
            check, found = _scored(judge, "probe of rates", "allreduce", PROBE, size)
            checks.append(check)
            measured = rates(found["log"])
            checks += rate_checks(measured, target)
    return {
        "ok": all(check.ok for check in checks),
        "target": target_name,
        "checks": [asdict(check) for check in checks],
        "rates": measured,
        "environment": environment(),
    }
