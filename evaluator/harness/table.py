"""`docs/problems.md`: one row per problem, from a gate run and a score run kept as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from problems import roofline
from problems.registry import DEFAULT_TRACK, Problem, all_problems, load_target

TARGETS = ("h100x4", "b200x4", "h200x4", "cpu4")


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}"


def _row(problem: Problem, gate: dict[str, Any] | None, score: dict[str, Any] | None) -> str:
    cells = [str(problem.number), f"`{problem.slug}`", str(problem.level), problem.bound]
    for name in TARGETS:
        target = load_target(name)
        size = target.cells[0]
        if target.ranks not in problem.world_sizes:
            cells.append("–")
            continue
        cells.append(_micro(roofline.roof_seconds(problem.times(size, target))))
    timing = score.get("timing") if score else None
    cells.append(f"{timing['reference_ms']:.2f}" if timing else "–")
    if timing:
        cells.append(f"{timing['speedup']:.2f} ({timing['speedup_low']:.2f}–{timing['speedup_high']:.2f})")
    else:
        cells.append("–")
    cells.append(", ".join(gate["killed"]) if gate else "–")
    cells.append("; ".join(f"{k}: {v}" for k, v in problem.waivers.items()) or "")
    return "| " + " | ".join(cells) + " |"


def shares() -> dict[str, int]:
    """Problems of the 87 by what bounds them at the default size on the official target."""
    counts = {"nvlink": 0, "memory": 0, "compute": 0}
    for problem in all_problems(DEFAULT_TRACK):
        counts[problem.bound] += 1
    return counts


def render(gate_json: Path | None, scores_json: Path | None, note: str = "") -> str:
    """The document as Markdown. Without a JSON file its columns say "–"."""
    gates = {row["slug"]: row for row in json.loads(gate_json.read_text())} if gate_json else {}
    rows = json.loads(scores_json.read_text()) if scores_json else []
    scores = {row["problem"]["slug"]: row for row in rows}
    counts = shares()
    total = sum(counts.values())
    told = ", ".join(f"{name} {count} ({100 * count / total:.0f} %)" for name, count in counts.items())
    lines = [
        "# The problems",
        "",
        f"Bound at the default size on h100x4, of {total} problems: {told}. "
        "(Published by the paper: link 75 %, HBM 18 %, compute 7 %.)",
        "",
        "T_roof in µs at each target's first ranked size, with in-network reduction where the target has it "
        "(cpu4: tiny, nominal peaks). Reference time and reference-against-itself speedup with its 95 % "
        "interval: measured on cpu4 at tiny, quick protocol. The mutants named made the gate fail, as they "
        "must; a waiver says why one may pass.",
        *(["", note] if note else []),
        "",
        "| # | slug | level | bound | "
        + " | ".join(f"T_roof {name}" for name in TARGETS)
        + " | reference ms (cpu4) | A/A speedup (cpu4) | mutants killed | waivers |",
        "|" + "---|" * (8 + len(TARGETS)),
    ]
    lines += [_row(p, gates.get(p.slug), scores.get(p.slug)) for p in all_problems()]
    lines += [
        "",
        "This page is generated, not written:",
        "",
        "```",
        ".venv/bin/python -m evaluator.harness gate --json gate.json",
        ".venv/bin/python -m evaluator.harness score-many --protocol quick --json scores.json",
        ".venv/bin/python -m evaluator.harness table --gate gate.json --scores scores.json > docs/problems.md",
        "```",
    ]
    return "\n".join(lines) + "\n"
