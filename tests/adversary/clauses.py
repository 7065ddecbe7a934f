"""The `must_not` clauses of the manifest, each a check that says what it found (None: kept)."""

from __future__ import annotations

import json
import os
import re
import site
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.harness.sandbox.layout import host_layout
from evaluator.harness.sandbox.logs import HEAD_BYTES, TAIL_BYTES
from evaluator.harness.sandbox.names import run_root

CHECKOUT = Path(__file__).resolve().parents[2]
SPEED_LIMIT = 1.3
CANARIES = ("pkb_redteam_canary", "pkb_redteam_heartbeat", "pkb_redteam_slip", "pkb_redteam_fill_")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Seen:
    """What the runner noted about one job while it lived."""

    role: str
    name: str
    uid: int | None
    processes: dict[int, str] = field(default_factory=dict)
    """Host pid -> start time, taken when the job was closed."""


@dataclass
class Evidence:
    """Everything a clause may look at."""

    verdict: str
    result: dict[str, Any]
    jobs: list[Seen]
    marker: str
    connections: int
    honest_speedup: Callable[[], float]
    speedup_again: Callable[[], float]
    neighbour: Callable[[], str | None]
    pages: Callable[[], dict[str, list[str]]]


def start_time(pid: int) -> str | None:
    """When a process started (clock ticks), None when it has ended; tells a reused pid apart."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie has ended; only its parent has not yet asked how.
    return None if fields[0] in "ZX" else fields[19]


def strings(tree: Any) -> Iterator[str]:
    """Every string in a JSON tree, keys included."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from strings(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from strings(value)


def stray_files() -> list[str]:
    """Files of the suite that lie outside a job, to a depth of four folders."""
    home = Path.home()
    roots = [CHECKOUT, home, Path(tempfile.gettempdir()), Path("/dev/shm"), run_root()]
    roots += [Path(folder) for folder in site.getsitepackages()]
    found = set()
    for root in roots:
        for folder, below, names in os.walk(root):
            if folder.count(os.sep) - str(root).count(os.sep) >= 4:
                below[:] = []
            found |= {f"{folder}/{name}" for name in names if name.startswith(CANARIES)}
    return sorted(found)


def _logs(evidence: Evidence) -> str:
    return "\n".join(evidence.result.get("log", {}).values())


def _correct(evidence: Evidence) -> str | None:
    return "the verdict is correct" if evidence.verdict == "correct" else None


def _rejected(evidence: Evidence) -> str | None:
    return f"called an attack: {evidence.result['message']}" if evidence.verdict == "rejected" else None


def _speedup(evidence: Evidence) -> str | None:
    """Measured again when it looks too fast: noise does not repeat, an advantage does."""
    timing = evidence.result.get("timing")
    if not timing or timing["speedup_low"] <= SPEED_LIMIT:
        return None
    limit = SPEED_LIMIT * max(1.0, evidence.honest_speedup())
    lows = [timing["speedup_low"], *(evidence.speedup_again() for _ in range(2))]
    return f"speedup_low {lows} is over {limit:.2f}" if min(lows) > limit else None


def _marker(evidence: Evidence) -> str | None:
    text = json.dumps(evidence.result)
    return "the marker is in the result" if evidence.marker in text or "LEAK" in _logs(evidence) else None


def _files(evidence: Evidence) -> str | None:
    found = stray_files()
    return f"left behind: {found[:3]}" if found else None


def _network(evidence: Evidence) -> str | None:
    if evidence.connections:
        return f"{evidence.connections} connections reached the host"
    return "NET-OK in the log" if "NET-OK" in _logs(evidence) else None


def _survivors(evidence: Evidence) -> str | None:
    for job in evidence.jobs:
        alive = [pid for pid, since in job.processes.items() if start_time(pid) == since]
        groups = [str(p.base / job.name) for p in host_layout().bases() if (p.base / job.name).exists()]
        if alive or groups:
            return f"{job.role}: processes {alive} or groups {groups} are still there"
    return None


def _reach(evidence: Evidence) -> str | None:
    return "REACH in the log" if "REACH" in _logs(evidence) else None


def _apart(evidence: Evidence) -> str | None:
    pair = [job for job in evidence.jobs if job.role in ("reference", "submission")][:2]
    if len(pair) < 2:
        return None
    first, second = pair
    shared = set(first.processes) & set(second.processes)
    same = first.uid is not None and first.uid == second.uid
    return f"shared processes {shared} or uid {first.uid}" if shared or same else None


def _log_cap(evidence: Evidence) -> str | None:
    for name, text in evidence.result.get("log", {}).items():
        # Replacement characters may take three bytes where one stood.
        if len(text) > HEAD_BYTES + TAIL_BYTES + 200 or "\0" in text:
            return f"{name}: {len(text)} characters"
        text.encode()
    return None


def _strict_json(evidence: Evidence) -> str | None:
    try:
        json.dumps(evidence.result, allow_nan=False)
    except ValueError as error:
        return f"the result is no strict JSON: {error}"
    return None


def _controls(evidence: Evidence) -> str | None:
    bad = next((text for text in strings(evidence.result) if _CONTROL.search(text)), None)
    return f"control bytes in {bad[:60]!r}" if bad is not None else None


def _page(clause: str) -> Callable[[Evidence], str | None]:
    return lambda evidence: "; ".join(evidence.pages()[clause][:3]) or None


CLAUSES: dict[str, Callable[[Evidence], str | None]] = {
    "correct": _correct,
    "rejected": _rejected,
    "speedup>1.3": _speedup,
    "marker_leaked": _marker,
    "canary_persisted": _files,
    "file_outside_target": _files,
    "disk_over_quota": _files,
    "network_reached": _network,
    "process_survives": _survivors,
    "harms_others": lambda evidence: evidence.neighbour(),
    "parent_reachable": _reach,
    "reads_reference_memory": _apart,
    "log_over_cap": _log_cap,
    "raw_control_bytes": _controls,
    "odd_json": _strict_json,
    "unescaped_markup": _page("unescaped_markup"),
    "hidden_controls_in_page": _page("hidden_controls_in_page"),
    "csv_formula": _page("csv_formula"),
    "portal_5xx": _page("portal_5xx"),
}
ALWAYS = ("marker_leaked", "network_reached", "process_survives", "parent_reachable", "log_over_cap",
          "raw_control_bytes", "odd_json")  # fmt: skip
"""Kept by every entry, whatever its manifest line says."""
