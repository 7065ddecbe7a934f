"""What the ranks' profilers saw, read with suspicion: events on one clock, and the log of one call's operators.

Nothing in it is trusted: it explains a result, and no verdict, time or place on a board depends on it.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_RAW = 8 << 20
"""Bytes of one rank's trace, unpacked: as lists they take twenty times as much."""
MAX_EVENTS = 20000
MAX_OPS = 20000
MAX_CALLS = 8
"""Calls that are read, more than are ever traced: each costs a walk through all events."""
CALL, SETTLE = "pkb call", "pkb wait for the device"
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
RUNTIME = frozenset({"cuda_runtime", "cuda_driver"})
KINDS = frozenset({"cpu_op", "user_annotation"}) | DEVICE | RUNTIME
_BACKENDS = ("gloo:", "nccl:", "mpi:", "ucc:")
_NCCL_KERNEL = re.compile(r"^ncclDevKernel")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: start and duration in µs since the first event of all ranks."""

    kind: str
    name: str
    start: float
    duration: float
    thread: int
    more: dict[str, int]

    @property
    def end(self) -> float:
        return self.start + self.duration

    @property
    def on_device(self) -> bool:
        return self.kind in DEVICE

    @property
    def moves(self) -> bool:
        """Whether it is a collective at work (not the moment at which it was asked for)."""
        backend = self.kind == "user_annotation" and self.name.startswith(_BACKENDS)
        return backend or (self.kind == "kernel" and bool(_NCCL_KERNEL.match(self.name)))


@dataclass(frozen=True, slots=True)
class Op:
    """One operator of the logged call: storages by number with their dtypes, and the author's line."""

    name: str
    line: int | None
    reads: tuple[tuple[int, str], ...]
    writes: tuple[tuple[int, str], ...]
    gives: tuple[tuple[int, str], ...]


@dataclass
class RankTrace:
    """One rank. `events` in order of time; `ops` is None where no call was logged."""

    rank: int
    events: list[Event] = field(default_factory=list)
    ops: list[Op] | None = None
    result: frozenset[int] = frozenset()
    whole: bool = True
    triton: bool = False
    device_peak: int | None = None
    """Most bytes that torch's allocator held on the card, by the rank's own word."""
    notes: list[str] = field(default_factory=list)

    def calls(self) -> list[Event]:
        """The traced calls."""
        return [e for e in self.events if _marks_call(e)]

    def host_thread(self) -> int | None:
        """The thread that calls `solution`."""
        calls = self.calls()
        return calls[0].thread if calls else None

    def within(self, call: Event) -> list[Event]:
        """What started in a call, the call itself left out."""
        return [e for e in self.events if call.start <= e.start < call.end and e is not call]

    def moving(self, call: Event) -> list[tuple[float, float]]:
        """Spans of collectives in a call: from the moment at which one is asked for until it is done."""
        inside = self.within(call)
        done = [e for e in inside if e.moves]
        asked = [e.start for e in inside if e.kind == "cpu_op" and e.name.startswith("c10d::")]
        hosted = [e for e in done if e.kind == "user_annotation"]
        if len(asked) != len(hosted):
            return [(e.start, e.end) for e in done]
        spans = [(start, e.end) for start, e in zip(asked, hosted, strict=True)]
        return spans + [(e.start, e.end) for e in done if e.kind != "user_annotation"]

    def operators(self, call: Event) -> list[Event]:
        """Operators of the calling thread that lie in no other operator."""
        found: list[Event] = []
        end = -math.inf
        for event in self.within(call):
            if event.kind == "cpu_op" and event.thread == call.thread and event.start >= end:
                found.append(event)
                end = event.end
        return found


def read(blobs: Sequence[bytes]) -> list[RankTrace]:
    """The traces of all ranks on one clock; a blob that can be none becomes a trace without events."""
    raw = [_unpacked(blob) for blob in blobs]
    bases = [_base(item) for item in raw]
    first = min((base for base in bases if base is not None), default=0)
    traces = [
        _rank(rank, item, base, first) for rank, (item, base) in enumerate(zip(raw, bases, strict=True))
    ]
    origin = min((trace.events[0].start for trace in traces if trace.events), default=0.0)
    for trace in traces:
        trace.events = [
            Event(e.kind, e.name, round(e.start - origin, 3), e.duration, e.thread, e.more)
            for e in trace.events
        ]
    return traces


def _unpacked(blob: bytes) -> dict[str, Any]:
    try:
        tool = zlib.decompressobj()
        data = tool.decompress(blob, MAX_RAW)
        found = json.loads(data) if tool.eof else {}
    except (zlib.error, ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def _trace_of(item: dict[str, Any]) -> dict[str, Any]:
    trace = item.get("trace")
    return trace if isinstance(trace, dict) else {}


def _base(item: dict[str, Any]) -> int | None:
    base = _trace_of(item).get("base_ns")
    return base if type(base) is int and 0 <= base < 1 << 62 else None


def _rank(rank: int, item: dict[str, Any], base: int | None, first: int) -> RankTrace:
    shift = ((base or first) - first) / 1e3
    rows = _trace_of(item).get("events")
    events = [e for row in _items(rows, MAX_EVENTS) if (e := _event(row, shift)) is not None]
    events.sort(key=lambda e: (e.start, -e.duration))
    calls = [e for e in events if _marks_call(e)]
    surplus = {id(e) for e in calls[MAX_CALLS:]}
    events = [e for e in events if id(e) not in surplus]
    log, peak = item.get("log"), item.get("device_peak")
    found = RankTrace(rank, events, notes=[_word(note) for note in _items(item.get("notes"), 4)])
    if surplus:
        found.notes.append(
            f"{len(calls)} calls are marked, more than were asked for: only {MAX_CALLS} are read"
        )
    found.device_peak = peak if type(peak) is int and 0 <= peak < 1 << 50 else None
    if isinstance(log, dict):
        found.ops = [op for row in _items(log.get("ops"), MAX_OPS) if (op := _op(row)) is not None]
        found.result = frozenset(n for n in _items(log.get("result"), MAX_OPS) if type(n) is int)
        found.whole = log.get("whole") is True
        found.triton = log.get("triton") is True
    return found


def _marks_call(event: Event) -> bool:
    return event.kind == "user_annotation" and event.name.startswith(CALL)


def _items(value: Any, limit: int) -> list[Any]:
    return value[:limit] if isinstance(value, list) else []


def _word(value: Any) -> str:
    return "".join(c for c in str(value)[:300] if c.isprintable())


def _number(value: Any) -> bool:
    return type(value) in (int, float) and -1e18 < value < 1e18


def _event(row: Any, shift: float) -> Event | None:
    if not isinstance(row, list) or len(row) != 6:
        return None
    kind, name, start, duration, thread, more = row
    sound = kind in KINDS if isinstance(kind, str) else False
    if not (sound and isinstance(name, str) and _number(start) and _number(duration) and duration >= 0):
        return None
    kept = {
        key: value
        for key, value in (more if isinstance(more, dict) else {}).items()
        if key in ("bytes", "stream", "device", "correlation") and type(value) is int and 0 <= value < 1 << 53
    }
    number = thread if type(thread) is int and 0 <= thread < 1 << 53 else 0
    return Event(kind, _word(name)[:200], float(start) + shift, float(duration), number, kept)


def _op(row: Any) -> Op | None:
    if not isinstance(row, dict) or not isinstance(row.get("op"), str):
        return None
    line = row.get("line")
    return Op(
        _word(row["op"])[:120],
        line if type(line) is int and 0 < line < 1 << 20 else None,
        _places(row.get("reads")),
        _places(row.get("writes")),
        _places(row.get("gives")),
    )


def _places(value: Any) -> tuple[tuple[int, str], ...]:
    found = []
    for pair in _items(value, 4096):
        if isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int and isinstance(pair[1], str):
            found.append((pair[0], pair[1][:20]))
    return tuple(found)


def chrome(traces: Sequence[RankTrace]) -> Iterator[dict[str, Any]]:
    """Events in Chrome's format, one process per rank: what Perfetto and chrome://tracing open."""
    for trace in traces:
        name = {"ph": "M", "pid": trace.rank, "tid": 0, "name": "process_name"}
        yield {**name, "args": {"name": f"rank {trace.rank}"}}
        for event in trace.events:
            row = {"ph": "X", "pid": trace.rank, "tid": event.thread, "cat": event.kind, "name": event.name}
            yield {**row, "ts": event.start, "dur": event.duration, "args": event.more}


def busy(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of spans, in order."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def gaps(spans: Sequence[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """What of [start, end] no span covers."""
    free, at = [], start
    for begin, stop in busy(spans):
        if begin > at:
            free.append((at, min(begin, end)))
        at = max(at, stop)
        if at >= end:
            break
    if at < end:
        free.append((at, end))
    return [(a, b) for a, b in free if b > a]
