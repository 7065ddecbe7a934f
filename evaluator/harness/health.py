"""Whether the cards of a host are fit and quiet: asked before each job, kept with each result.

Read from `nvidia-smi` and, where it may be read, the kernel's log. Settings of a card are never touched. What a driver
does not tell ("[N/A]") counts as nothing, and is listed as not readable.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from problems.registry import Target

FIELDS = (
    "index", "name", "uuid", "pci.bus_id", "driver_version", "pstate", "persistence_mode", "mig.mode.current",
    "temperature.gpu", "clocks.sm", "clocks.max.sm", "clocks_throttle_reasons.active", "memory.used",
    "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "remapped_rows.pending",
    "remapped_rows.failure",
)  # fmt: skip
QUERY = ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
PROCESSES = (
    "nvidia-smi",
    "--query-compute-apps=pid,gpu_uuid,used_memory,name",
    "--format=csv,noheader,nounits",
)
TOOL_LIMIT_S = 20.0
QUIET_S, LOOK_EVERY_S = 30.0, 2.0
MOST_MEMORY_MIB = 8192
"""On a card before a job, beside what the supervisor's own allocator keeps there."""

# Bits of the driver's mask. Idle, application clocks, sync boost and the power cap are no defects.
THROTTLES = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
             0x80: "hardware power brake"}  # fmt: skip
# Xid errors that speak of the card. Those that any program with a bad pointer can cause (13, 31, 43, 45) do not
# count, nor does 63 (a row was remapped, which the fields above tell better).
XIDS = {
    48: "double-bit ECC error", 62: "microcontroller halt", 64: "row remapping failed", 74: "NVLink error",
    79: "the card has fallen off the bus", 94: "contained ECC error", 95: "uncontained ECC error",
    119: "GSP does not answer", 120: "GSP error", 140: "unrecovered ECC error", 154: "recovery action needed",
}  # fmt: skip
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)[^)]*\): (\d+)")


@dataclass(frozen=True)
class Health:
    """`lasting` reasons need an operator; `passing` ones may be gone in a moment. Neither: fit."""

    cards: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[dict[str, Any]] = field(default_factory=list)
    lasting: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    waited_s: float = 0.0

    @property
    def reasons(self) -> list[str]:
        return [*self.lasting, *self.passing]

    def shown(self) -> dict[str, Any]:
        """As the result keeps it; other people's processes without their names."""
        foreign = [{"memory_mib": row["memory_mib"]} for row in self.foreign]
        return asdict(self) | {"foreign": foreign, "fit": not self.reasons}


def _asked(command: Sequence[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TOOL_LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def kernel_log() -> str | None:
    """The kernel's messages since the start of the machine; None where they may not be read."""
    return _asked(("dmesg",))


def _number(text: str) -> int | None:
    match = re.match(r"\s*(0x[0-9a-fA-F]+|\d+)", text)
    return int(match[1], 0) if match else None


def read_cards(text: str) -> list[dict[str, Any]]:
    """Rows of the card query, by field name; what the driver does not tell is None."""
    rows = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(FIELDS):
            told = {
                name: None if value.startswith("[") else value
                for name, value in zip(FIELDS, values, strict=True)
            }
            rows.append({"index": _number(values[0]), **{k: v for k, v in told.items() if k != "index"}})
    return rows


def read_processes(text: str) -> list[dict[str, Any]]:
    """[{pid, uuid, memory_mib, name}] of what computes on the cards."""
    rows = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",", 3)]
        if len(parts) == 4 and (pid := _number(parts[0])) is not None:
            rows.append({"pid": pid, "uuid": parts[1], "memory_mib": _number(parts[2]), "name": parts[3]})
    return rows


def read_xids(text: str) -> list[tuple[str, int]]:
    """(bus address, number) of the errors in a kernel log, in order."""
    return [(match[1], int(match[2])) for match in _XID.finditer(text)]


def judge(
    cards_text: str | None,
    processes_text: str | None,
    log_text: str | None,
    *,
    cards: Sequence[int],
    own: Sequence[int] = (),
    own_mib: int = 0,
) -> Health:
    """What three outputs say of these cards; `own` are processes of ours, `own_mib` what this one keeps on a card."""
    if cards_text is None:
        return Health(
            lasting=[
                "nvidia-smi does not answer: driver or card is gone, or was never there (docs/gpu-hosts.md)"
            ]
        )
    rows = [row for row in read_cards(cards_text) if row["index"] in cards]
    found = Health(cards=[_card(row) for row in rows])
    missing = sorted(set(cards) - {row["index"] for row in rows})
    if missing:
        found.lasting.append(f"the driver does not list card {', '.join(map(str, missing))}")
    for row in rows:
        _judge_card(row, found, own_mib)
    uuids = {row["uuid"] for row in rows}
    for process in read_processes(processes_text or ""):
        if process["uuid"] in uuids and process["pid"] not in own:
            found.foreign.append(process)
    if found.foreign:
        told = ", ".join(f"{row['name']} (pid {row['pid']})" for row in found.foreign[:4])
        found.passing.append(f"another program computes on the card: {told}")
    if processes_text is None:
        found.unread.append("processes")
    if log_text is None:
        found.unread.append("kernel log (Xid)")
    buses = {_slot(row["pci.bus_id"] or "") for row in rows}
    xids = {number for bus, number in read_xids(log_text or "") if _slot(bus) in buses}
    for number in sorted(xids & set(XIDS)):
        found.lasting.append(f"Xid {number} since the machine started: {XIDS[number]}")
    return found


def _slot(bus: str) -> str:
    """`00000000:1B:00.0` and `0000:1b:00` name the same card."""
    return bus.lower().partition(".")[0][-5:]


def _judge_card(row: dict[str, Any], found: Health, own_mib: int) -> None:
    name = f"card {row['index']}"
    if (row["mig.mode.current"] or "").lower() == "enabled":
        found.lasting.append(f"{name} is divided (MIG): the target wants it whole")
    if _number(row["ecc.errors.uncorrected.volatile.total"] or ""):
        count = row["ecc.errors.uncorrected.volatile.total"]
        found.lasting.append(f"{name} had {count} uncorrected ECC errors since the driver was loaded")
    for key, told in (
        ("retired_pages.pending", "memory pages wait to be retired"),
        ("remapped_rows.pending", "memory rows wait to be remapped"),
        ("remapped_rows.failure", "remapping of a memory row failed"),
    ):
        if (row[key] or "").lower() in ("yes", "1"):
            found.lasting.append(f"{name}: {told}")
    mask = _number(row["clocks_throttle_reasons.active"] or "") or 0
    found.passing.extend(f"{name} is slowed: {told}" for bit, told in THROTTLES.items() if mask & bit)
    used = _number(row["memory.used"] or "")
    if used is not None and used > MOST_MEMORY_MIB + own_mib:
        found.passing.append(f"{name} holds {used} MiB before the job")
    unread = [key for key in FIELDS if row[key] is None]
    found.unread.extend(f"{name} {key}" for key in unread)


def _card(row: dict[str, Any]) -> dict[str, Any]:
    mask = _number(row["clocks_throttle_reasons.active"] or "") or 0
    return {
        "index": row["index"],
        "name": row["name"],
        "driver": row["driver_version"],
        "pstate": row["pstate"],
        "sm_mhz": _number(row["clocks.sm"] or ""),
        "sm_max_mhz": _number(row["clocks.max.sm"] or ""),
        "temperature_c": _number(row["temperature.gpu"] or ""),
        "memory_used_mib": _number(row["memory.used"] or ""),
        "throttle": [told for bit, told in THROTTLES.items() if mask & bit],
    }


def _family() -> list[int]:
    """This process and all that descend from it."""
    from evaluator.harness.sandbox.processes import descendants

    return [os.getpid(), *descendants(os.getpid())]


def look(target: Target) -> Health:
    """The state of the target's cards now; CPU targets have none and are always fit."""
    if target.device == "cpu":
        return Health()
    cards = sorted(set(target.cards or ()))
    return judge(
        _asked(QUERY), _asked(PROCESSES), kernel_log(), cards=cards, own=_family(), own_mib=_own_memory(cards)
    )


def _own_memory(cards: Sequence[int]) -> int:
    """MiB that this process's allocator keeps on the fullest card; it may not have touched any."""
    if not torch.cuda.is_initialized():
        return 0
    return max(torch.cuda.memory_reserved(card) for card in cards) >> 20


def when_quiet(
    target: Target,
    *,
    seen: Callable[[Target], Health] = look,
    limit_s: float = QUIET_S,
    rest: Callable[[float], None] = time.sleep,
) -> Health:
    """Look until nothing passing stands in the way, at most `limit_s`; what lasts is told at once."""
    waited = 0.0
    while True:
        found = seen(target)
        if found.lasting or not found.passing or waited >= limit_s:
            return Health(found.cards, found.foreign, found.lasting, found.passing, found.unread, waited)
        rest(LOOK_EVERY_S)
        waited += LOOK_EVERY_S
