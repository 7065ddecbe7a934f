"""Rules that read a trace: the five kinds of waste of design section 8, each with its cost and, where known, the line.

A rule speaks of what at least half of the traced calls show. Costs are µs per call on the rank that loses most.
Nothing here is a verdict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from evaluator.diagnose.trace import RUNTIME, SETTLE, Event, Op, RankTrace, busy, gaps

STALL_US = 100.0
"""A gap shorter than this is Python between two operators."""
LEAST_SHARE = 0.05
"""Of the call: what costs less is not worth a line."""
MAX_FINDINGS = 20

TITLES = {
    "host_stall": "The host stalls between operators",
    "launch_gap": "The device waits for launches",
    "unread_result": "Work whose result nobody reads",
    "device_sync": "Copies and waits between host and device inside the call",
    "data_dependent_shape": "Shapes that depend on data",
    "precision_round_trip": "Precision round trips",
}
_SYNCS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize")
_SHAPED = frozenset(
    f"aten::{name}"
    for name in (
        "nonzero", "nonzero_static", "masked_select", "unique_dim", "unique_consecutive", "_unique", "_unique2",
        "repeat_interleave", "bincount", "argwhere", "masked_scatter",
    )
)  # fmt: skip
_FLOATS = frozenset({"float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"})
_CASTS = frozenset({"aten::_to_copy", "aten::copy_"})
_KEEPS_VALUES = frozenset(
    f"aten::{name}"
    for name in ("clone", "cat", "stack", "contiguous", "copy_", "_to_copy", "index_select", "slice_copy")
)


@dataclass
class Finding:
    """`cost_us` per call on `rank`; `share` of that rank's call; `line` of the author's file."""

    kind: str
    sentence: str
    cost_us: float
    share: float
    rank: int
    line: int | None = None
    count: int = 1

    def shown(self) -> dict[str, Any]:
        """As the result keeps it."""
        row = asdict(self)
        row.update(title=TITLES[self.kind], cost_us=round(self.cost_us, 1), share=round(self.share, 4))
        return row


def find(traces: Sequence[RankTrace], *, native: bool = False) -> list[Finding]:
    """All findings, the dearest first. `native`: the file builds code of its own, which shows in no operator.

    Shares are of the slowest rank's call, so that those of different ranks can be compared.
    """
    best: dict[tuple[str, int | None], Finding] = {}
    whole = max((median(e.duration for e in trace.calls()) for trace in traces if trace.calls()), default=0.0)
    for trace in traces:
        for key, finding in _usual(trace, native or trace.triton).items():
            finding.share = min(finding.cost_us / whole, 1.0) if whole else 0.0
            if finding.share >= LEAST_SHARE and (key not in best or finding.cost_us > best[key].cost_us):
                best[key] = finding
    return sorted(best.values(), key=lambda f: -f.cost_us)[:MAX_FINDINGS]


def _usual(trace: RankTrace, native: bool) -> dict[tuple[str, int | None], Finding]:
    """One rank's findings by kind and line: what at least half of the traced calls show, at its middle cost.

    What one call of three shows is the machine's: a thread that was woken late, not a stall of the file's.
    """
    calls = trace.calls()
    seen: dict[tuple[str, int | None], list[Finding]] = defaultdict(list)
    for call in calls:
        for finding in _Look(trace, call, native).findings():
            # Gaps are told as one, and the longest may lie elsewhere in each call.
            seen[finding.kind, None if finding.kind == "launch_gap" else finding.line].append(finding)
    return {
        key: sorted(found, key=lambda f: f.cost_us)[(len(found) - 1) // 2]
        for key, found in seen.items()
        if 2 * len(found) >= len(calls)
    }


class _Look:
    """One call of one rank with its operators matched to the log."""

    def __init__(self, trace: RankTrace, call: Event, native: bool) -> None:
        self.trace, self.call, self.native = trace, call, native
        self.inside = trace.within(call)
        self.ops = trace.ops or []
        self.events = _matched(
            self.ops, [e for e in self.inside if e.kind == "cpu_op" and e.thread == call.thread]
        )
        # Matched events follow each other, so that the one at a moment is found without looking at all.
        self.ran = [(e, op.line) for op, e in zip(self.ops, self.events, strict=True) if e is not None]
        self.began = [e.start for e, _ in self.ran]
        self.lined = [(e.start, line) for e, line in self.ran if line]
        self.launches: dict[int, Event] = {}
        for event in self.inside:
            if event.kind in RUNTIME and "correlation" in event.more:
                self.launches.setdefault(event.more["correlation"], event)
        self.settled = next((e.start for e in self.inside if e.name == SETTLE), call.end)
        self.idle = self._idle()

    def _waits(self, event: Event) -> bool:
        """Whether the host waits for the device in it, before `solution` returned."""
        return event.kind in RUNTIME and event.name in _SYNCS and event.start < self.settled

    def _idle(self) -> list[tuple[float, float, Event | None]]:
        """Gaps of the device between its first and last event, from the first wait that ended in one with that wait.

        What the device idled before the host began to wait is not the wait's.
        """
        device = [(e.start, e.end) for e in self.inside if e.on_device]
        if not device:
            return []
        waits = sorted(filter(self._waits, self.inside), key=lambda e: e.end)
        ends = [e.end for e in waits]
        found: list[tuple[float, float, Event | None]] = []
        for start, end in gaps(device, min(a for a, _ in device), max(b for _, b in device)):
            place = bisect_left(ends, start)
            wait = waits[place] if place < len(waits) and ends[place] <= end else None
            cut = end if wait is None else max(start, wait.start)
            if cut > start:
                found.append((start, cut, None))
            if cut < end:
                found.append((cut, end, wait))
        return found

    def findings(self) -> Iterable[Finding]:
        yield from self._stalls()
        yield from self._launch_gaps()
        yield from self._unread()
        yield from self._syncs()
        yield from self._shapes()
        yield from self._round_trips()

    def _told(
        self, kind: str, sentence: str, cost: float, line: int | None, count: int = 1
    ) -> Iterable[Finding]:
        share = cost / self.call.duration if self.call.duration else 0.0
        if share >= LEAST_SHARE:
            yield Finding(kind, sentence, cost, min(share, 1.0), self.trace.rank, line, count)

    def cost(self, index: int) -> float:
        """Duration of a logged operator in the traced call, µs; 0 where it was not found."""
        event = self.events[index]
        return event.duration if event else 0.0

    def line_at(self, time: float) -> int | None:
        """The line of the last operator that began before a moment."""
        place = bisect_right(self.lined, time, key=lambda one: one[0])
        return self.lined[place - 1][1] if place else None

    def _stalls(self) -> Iterable[Finding]:
        """Time in which neither an operator of this rank nor a collective nor the device was at work."""
        if self.native:
            return
        shown = [(e.start, e.end) for e in self.inside if e.kind != "user_annotation"]
        shown += self.trace.moving(self.call)
        free = [(a, b) for a, b in gaps(shown, self.call.start, self.settled) if b - a >= STALL_US]
        by_line: dict[int | None, list[float]] = {}
        for start, end in free:
            by_line.setdefault(self.line_at(start), []).append(end - start)
        for line, lengths in by_line.items():
            after = f" after line {line}" if line else ""
            sentence = (
                f"Nothing ran for {sum(lengths):.0f} µs{after}: Python, NumPy, sleeping, giving back large memory, or "
                "waiting for another rank outside a collective. Keep the host ahead: fewer steps in Python, no work on "
                "values between operators."
            )
            yield from self._told("host_stall", sentence, sum(lengths), line, len(lengths))

    def _launch_gaps(self) -> Iterable[Finding]:
        """Time in which the device had nothing to do although the host waited for nothing."""
        free = [(start, end) for start, end, wait in self.idle if wait is None]
        if not free:
            return
        cost = sum(end - start for start, end in free)
        longest = max(free, key=lambda gap: gap[1] - gap[0])
        sentence = (
            f"Between its first and last kernel the device had nothing to do for {cost:.0f} µs in {len(free)} gaps. "
            "Launch fewer, larger kernels, or capture the call as a CUDA graph."
        )
        yield from self._told("launch_gap", sentence, cost, self.line_at(longest[0]), len(free))

    def _unread(self) -> Iterable[Finding]:
        if self.native or not self.trace.whole or self.trace.ops is None:
            return
        dead: dict[int | None, list[int]] = {}
        for index in unread(self.ops, self.trace.result):
            dead.setdefault(self.ops[index].line, []).append(index)
        for line, indexes in dead.items():
            names = ", ".join(sorted({self.ops[i].name.removeprefix("aten::") for i in indexes}))
            sentence = f"Nothing reads what {names[:120]} computes here. Leave it out."
            yield from self._told("unread_result", sentence, sum(map(self.cost, indexes)), line, len(indexes))

    def _syncs(self) -> Iterable[Finding]:
        """Host waits and copies across the bus before `solution` returned, and the device's idle time after a wait."""
        by_line: dict[int | None, list[Event]] = {}
        for event in self.inside:
            crosses = event.kind == "gpu_memcpy" and ("DtoH" in event.name or "HtoD" in event.name)
            if crosses or self._waits(event):
                by_line.setdefault(self._line_of(event), []).append(event)
        after_line: dict[int | None, list[tuple[float, float]]] = defaultdict(list)
        for start, end, wait in self.idle:
            if wait is not None:
                after_line[self._line_of(wait)].append((start, end))
        for line, events in by_line.items():
            names = ", ".join(sorted({e.name for e in events}))
            after = after_line[line]
            spans = busy([(e.start, e.end) for e in events] + after)
            idle = sum(end - start for start, end in after)
            then = f", {idle:.0f} µs" if idle else ""
            sentence = (
                f"{names[:160]}: the host waits for the device, and the device then for the host{then}."
            )
            cost = sum(end - start for start, end in spans)
            yield from self._told("device_sync", sentence, cost, line, len(events))

    def _line_of(self, event: Event) -> int | None:
        """The line of the operator in which an event of the host lies, or which launched one of the device."""
        at = self.launches.get(event.more.get("correlation", -1), event) if event.on_device else event
        place = bisect_right(self.began, at.start)
        if not place:
            return None
        own, line = self.ran[place - 1]
        return line if at.start < own.end else None

    def _shapes(self) -> Iterable[Finding]:
        by_line: dict[int | None, list[int]] = {}
        for index, op in enumerate(self.ops):
            masked = op.name == "aten::index" and any(dtype in ("bool", "uint8") for _, dtype in op.reads)
            if op.name in _SHAPED or masked:
                by_line.setdefault(op.line, []).append(index)
        for line, indexes in by_line.items():
            names = ", ".join(sorted({self.ops[i].name.removeprefix("aten::") for i in indexes}))
            sentence = (
                f"{names}: how large the result is depends on the values, so the host must wait for them and memory is "
                "asked for anew. Use a fixed size with a mask."
            )
            yield from self._told(
                "data_dependent_shape", sentence, sum(map(self.cost, indexes)), line, len(indexes)
            )

    def _round_trips(self) -> Iterable[Finding]:
        by_line: dict[int | None, list[tuple[int, int, str, str]]] = {}
        for there, back, wide, narrow in round_trips(self.ops):
            by_line.setdefault(self.ops[back].line, []).append((there, back, wide, narrow))
        for line, trips in by_line.items():
            there, back, wide, narrow = trips[0]
            from_line = self.ops[there].line
            began = f" (converted at line {from_line})" if from_line and from_line != line else ""
            sentence = f"{wide} to {narrow} and back to {wide}, with no arithmetic between{began}. Keep one precision."
            steps = {index for trip in trips for index in trip[:2]}
            yield from self._told(
                "precision_round_trip", sentence, sum(map(self.cost, steps)), line, len(trips)
            )


def _matched(ops: Sequence[Op], events: Sequence[Event]) -> list[Event | None]:
    """For each logged operator its event in the traced call: the next of that name that lies in no matched one."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, event in enumerate(events):
        places[event.name].append(index)
    starts = [event.start for event in events]
    found: list[Event | None] = []
    at, end = 0, float("-inf")
    for op in ops:
        named = places.get(op.name, [])
        place = bisect_left(named, max(at, bisect_left(starts, end)))
        if place == len(named):
            found.append(None)
            continue
        event = events[named[place]]
        found.append(event)
        at, end = named[place] + 1, event.end
    return found


def unread(ops: Sequence[Op], result: frozenset[int]) -> list[int]:
    """Indexes of the operators whose results reach neither the answer, an argument, a peer nor Python."""
    made: set[int] = set()
    for op in ops:
        read = {place for place, _ in op.reads}
        made |= {place for place, _ in op.gives if place not in read}
    live, dead = set(result), []
    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        reads, writes = ({place for place, _ in pairs} for pairs in (op.reads, op.writes))
        gives = {place for place, _ in op.gives} - reads
        leaves = op.name == "read" or op.name.startswith(("c10d::", "_c10d_functional::"))
        leaves |= op.name == "aten::_local_scalar_dense" or bool(writes - made)
        if leaves or (gives | writes) & live:
            live |= reads | writes
        elif gives or writes:
            dead.append(index)
    return sorted(dead)


def round_trips(ops: Sequence[Op]) -> list[tuple[int, int, str, str]]:
    """(cast there, cast back, dtype, dtype between) of values that were only converted or moved in between.

    What went over the wire in between was narrowed for a reason, and does not count.
    """
    origin: dict[int, tuple[int, str]] = {}
    found = []
    for index, op in enumerate(ops):
        targets = [*op.gives, *op.writes]
        written = {place for place, _ in op.writes}
        read = [pair for pair in op.reads if pair[0] not in written]
        if op.name in _CASTS and read and targets:
            (source, before), (target, after) = read[0], targets[0]
            if before != after and {before, after} <= _FLOATS:
                there = origin.get(source)
                if there is not None and there[1] == after:
                    found.append((there[0], index, after, before))
                    origin.pop(target, None)  # a third cast begins anew: this one is told once
                else:
                    origin[target] = (index, before)
                continue
        if op.name in _KEEPS_VALUES and read and all(place in origin for place, _ in read):
            origin.update({place: origin[read[0][0]] for place, _ in targets})
        else:
            for place, _ in op.reads if op.name.startswith("c10d::") else op.writes:
                origin.pop(place, None)
    return found
