"""The last traced call as bars: per rank a lane for the host, one for collectives, one for the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evaluator.diagnose.trace import SETTLE, Event, RankTrace, gaps

MAX_BARS = 400
"""Per rank; the longest are kept."""
KINDS = {
    "phase": "call, and the wait for the device at its end",
    "operator": "operators on the host",
    "python": "host without an operator (Python)",
    "wait": "host waits",
    "collective": "collectives at work",
    "kernel": "kernels",
    "copy": "copies and fills on the device",
}
_SYNC = "Synchronize"

Bar = list[Any]
"""[rank, lane, kind, start µs, duration µs, name]"""


def timeline(traces: Sequence[RankTrace]) -> dict[str, Any] | None:
    """{"call_us", "kinds", "bars", "left_out"}; times count from the first rank's start. None: there is no trace."""
    calls = {trace.rank: trace.calls()[-1] for trace in traces if trace.calls()}
    if not calls:
        return None
    origin = min(call.start for call in calls.values())
    bars: list[Bar] = []
    left_out = 0
    for trace in traces:
        if trace.rank not in calls:
            continue
        mine = list(_bars(trace, calls[trace.rank], origin))
        mine.sort(key=lambda bar: -bar[4])
        left_out += max(0, len(mine) - MAX_BARS)
        bars += sorted(mine[:MAX_BARS], key=lambda bar: bar[3])
    end = max(call.end for call in calls.values())
    return {"call_us": round(end - origin, 1), "kinds": KINDS, "bars": bars, "left_out": left_out}


def _bars(trace: RankTrace, call: Event, origin: float) -> Iterable[Bar]:
    def bar(lane: str, kind: str, start: float, end: float, name: str) -> Bar:
        return [trace.rank, lane, kind, round(start - origin, 1), round(end - start, 1), name[:80]]

    inside = trace.within(call)
    yield bar("call", "phase", call.start, call.end, "call")
    operators = trace.operators(call)
    moving = trace.moving(call)
    for event in operators:
        kind = "collective" if event.name.startswith("c10d::") else "operator"
        yield bar("host", kind, event.start, event.end, event.name)
    # Between two operators the host is in Python; where a collective of its own is at work meanwhile, it waits.
    working = [(e.start, e.end) for e in operators]
    free = gaps(working + moving, call.start, call.end)
    for begin, stop in free:
        yield bar("host", "python", begin, stop, "no operator")
    for begin, stop in gaps(working + free, call.start, call.end):
        yield bar("host", "wait", begin, stop, "waits for a collective")
    for event in inside:
        if event.moves:
            yield bar("collectives", "collective", event.start, event.end, event.name)
        if event.on_device:
            kind = "kernel" if event.kind == "kernel" else "copy"
            yield bar("device", kind, event.start, event.end, event.name)
        elif _SYNC in event.name or event.name == SETTLE:
            yield bar("call", "wait", event.start, event.end, event.name)
