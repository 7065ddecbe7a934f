"""The result JSON (`schema: 1`): what the portal stores and every page reads."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch

from evaluator.harness.builds import Built
from evaluator.harness.looking import Look
from evaluator.harness.protocol import Session
from evaluator.harness.verdict import Verdict
from evaluator.harness.version import PROTOCOL_VERSION, RESULT_SCHEMA
from problems import roofline
from problems.registry import Problem, Target


@dataclass
class Facts:
    """Everything that goes into a result."""

    problem: Problem
    target: Target
    size: str
    protocol: str
    grade: str
    verdict: Verdict
    session: Session | None
    stacks: dict[int, str]
    log: dict[str, str]
    memory: dict[str, int | None]
    built: Built
    durations: dict[str, float]
    seed: int
    files: dict[str, bytes]
    discarded: list[dict[str, Any]]
    """Earlier rounds that did not count: why, and what they read."""
    unsteady: list[str]
    """Why the last round should not have counted either."""
    below_floor: bool
    noise_floor: float
    upstream: dict[str, Any] | None
    look: Look


@cache
def environment() -> dict[str, Any]:
    """What the host is, enough to tell whether two results are comparable."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        **_cards(),
    }


def _cards() -> dict[str, Any]:
    if not torch.cuda.is_available():
        return {}
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"cards": names, "cuda": torch.version.cuda}


def _timing(facts: Facts) -> dict[str, Any] | None:
    session = facts.session
    if session is None or not session.timing.pairs or facts.verdict.verdict != "correct":
        return None
    timing = session.timing
    card = timing.card
    gain = timing.result()
    gaps = timing.outside_minus_ranks
    return {
        **timing.shown(),
        "speedup": gain.value,
        "speedup_low": gain.low,
        "speedup_high": gain.high,
        "coverage": gain.coverage,
        "calls": card.calls if card else len(timing.solution_calls),
        "pairs": len(timing.pairs),
        "warmup": timing.warmup,
        "handshake_ms": 1e3 * timing.handshake,
        "outside_minus_ranks_ms": 1e3 * median(gaps) / timing.block if gaps else None,
        "copies_ms": 1e3 * median(timing.copies) if timing.copies else None,
        "noise_floor": facts.noise_floor,
        "rounds": 1 + len(facts.discarded),
        "discarded": facts.discarded,
        "unsteady": facts.unsteady,
        "samples": [[1e3 * a, 1e3 * b] for a, b in timing.pairs],
        "raw_reference_ms": [1e3 * t for t in timing.reference_calls],
        "raw_solution_ms": [1e3 * t for t in timing.solution_calls],
        "reveal_ms": 1e3 * median(timing.trial_calls if card else timing.solution_calls),
        "stream_ms": 1e3 * median(pair[1] for pair in card.stream) if card else None,
        "gate_ms": 1e3 * median(pair[1] for pair in card.gate) if card else None,
        "card": card.shown() if card else None,
    }


def _roofline(facts: Facts, timing: dict[str, Any] | None) -> dict[str, Any] | None:
    """None where no times are measured: the peaks of a target whose ranks share a card are not those of its ranks."""
    if not facts.target.timed:
        return None
    times = facts.problem.times(facts.size, facts.target)
    roof_ms = 1e3 * roofline.roof_seconds(times)
    return {
        "t_roof_ms": roof_ms,
        "utilisation": roof_ms / timing["solution_ms"] if timing else None,
        "bound": roofline.bound_of(times),
        "revision": facts.problem.roofline_revision,
        "phases": [
            {
                "name": time.name,
                "bound": time.bound,
                "compute_ms": 1e3 * time.compute,
                "memory_ms": 1e3 * time.memory,
                "link_ms": 1e3 * time.link,
            }
            for time in times
        ],
    }


def _flags(facts: Facts) -> list[str]:
    flags = []
    if facts.session is not None and facts.session.timing.below_resolution:
        flags.append("below_resolution")
    if facts.session is not None and facts.session.timing.card and facts.session.timing.card.launch_bound:
        flags.append("launch_bound")
    if facts.session is not None and facts.session.built_late:
        flags.append("built_late")
    if facts.unsteady:
        flags.append("noisy")
    if facts.below_floor:
        flags.append("below_floor")
    if facts.protocol != "paper":
        flags.append("unranked_protocol")
    if not facts.target.timed:
        flags.append("untimed_target")
    return flags


def build(facts: Facts) -> dict[str, Any]:
    """The result as plain JSON types."""
    timing = _timing(facts)
    problem, found = facts.problem, facts.verdict
    peak, reference_peak = facts.memory.get("submission"), facts.memory.get("reference")
    return {
        "schema": RESULT_SCHEMA,
        "harness_version": PROTOCOL_VERSION,
        "problem": {"slug": problem.slug, "revision": problem.score_revision, "title": problem.title},
        "target": facts.target.slug,
        "size": facts.size,
        "input_set": "hardened",
        "protocol": facts.protocol,
        "verdict": found.verdict,
        "code": found.code,
        "message": found.message,
        "rank": found.rank,
        "line": found.first_line,
        "trials": facts.session.trials if facts.session else [],
        "ranks": facts.session.ranks if facts.session else [],
        "stacks": [{"rank": rank, "text": text} for rank, text in sorted(facts.stacks.items())],
        "timing": timing,
        "roofline": _roofline(facts, timing),
        "memory": {
            "peak_bytes": peak,
            "reference_peak_bytes": reference_peak,
            "device_peak_bytes": facts.memory.get("submission_device"),
            "reference_device_peak_bytes": facts.memory.get("reference_device"),
        },
        **facts.look.tell(
            facts.built.facts, cards=facts.target.device == "cuda", detail=facts.protocol == "profile"
        ),
        "build": {"seconds": facts.built.seconds, "cached": facts.built.cached, "units": facts.built.units},
        "upstream": facts.upstream,
        "isolation_grade": facts.grade,
        "environment": environment(),
        "flags": _flags(facts),
        "seeds": {"secret": str(facts.seed), "trials": len(facts.session.trials) if facts.session else 0},
        "source_sha256": hashlib.sha256(facts.files["solution.py"]).hexdigest(),
        "durations": facts.durations,
        "log": {"build": facts.verdict.log, **facts.log} if facts.verdict.log else facts.log,
    }
