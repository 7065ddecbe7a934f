"""How a submission moved its data, as the result and the boards show it.

On cards: the mechanisms, from what was built and what the trace shows ran. On CPU there is none to tell; instead, which
collectives the ranks called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.diagnose.mechanisms import Diagnosis, Mechanism, classify, identifier
from evaluator.diagnose.native_facts import NativeFacts
from evaluator.diagnose.trace import Event, RankTrace

MAX_WHY = 6
NONE = {"name": "none", "certain": True, "share": None}
ON_CPU = "On a CPU target there is no mechanism to tell: gloo moves all data through sockets on the host."
NO_TRACE = "There is no trace of a call, so what the file built is all that is known."

_NAMES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "allgather": "all_gather",
    "_allgather_base": "all_gather_into_tensor",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "recv_any_source": "recv",
}
_KNOWN = frozenset(_NAMES.values()) | {
    "all_to_all", "barrier", "broadcast", "gather", "monitored_barrier", "recv", "reduce", "reduce_scatter", "scatter",
    "send",
}  # fmt: skip
"""What a rank's trace may name: it is the rank's own word, and everybody sees it."""


def tell(traces: Sequence[RankTrace], facts: Sequence[NativeFacts], *, cards: bool) -> dict[str, Any]:
    """{"mechanisms", "movement", "mechanism_evidence"} of a result."""
    collectives = _collectives(traces)
    movement: dict[str, Any] = {"own_share": None, "collectives": collectives, "told": ON_CPU}
    if not cards:
        return {"mechanisms": [], "movement": movement, "mechanism_evidence": []}
    device = [_plain(event) for trace in traces for event in _last(trace) if event.on_device]
    traced = any(trace.calls() for trace in traces)
    found = classify(
        sass="\n".join(fact.sass for fact in facts),
        ptx="\n".join(fact.ptx for fact in facts),
        imports="\n".join(fact.imports for fact in facts),
        trace=device if traced else None,
    )
    movement.update(own_share=found.own_share, told=_told(found) if traced else NO_TRACE)
    rows = [_row(mechanism) for mechanism in found.mechanisms]
    return {
        "mechanisms": rows or ([dict(NONE)] if traced else []),
        "movement": movement,
        "mechanism_evidence": [row for mechanism in found.mechanisms for row in _evidence(mechanism)],
    }


def _told(found: Diagnosis) -> str:
    if found.own_share is None:
        return "The traced call ran nothing on the device."
    return (
        f"{found.own_share:.0%} of the device time of a traced call ran in kernels that the file built. A mechanism's "
        "share is that of the kernels that use it; with a device barrier it holds the wait for other ranks too."
    )


def _row(mechanism: Mechanism) -> dict[str, Any]:
    share = None if mechanism.share is None else round(mechanism.share, 4)
    return {"name": mechanism.title, "certain": mechanism.certain, "share": share}


def _evidence(mechanism: Mechanism) -> list[dict[str, str]]:
    """Where it was seen. Kernels are named, so this is for those who may see the source."""
    seen = dict.fromkeys((identifier(e.where), e.why) for e in mechanism.evidence)
    return [{"name": mechanism.title, "where": where, "why": why} for where, why in list(seen)[:MAX_WHY]]


def _plain(event: Event) -> dict[str, Any]:
    return {"cat": event.kind, "name": event.name, "dur": event.duration}


def _last(trace: RankTrace) -> list[Event]:
    calls = trace.calls()
    return trace.within(calls[-1]) if calls else []


def _collectives(traces: Sequence[RankTrace]) -> list[dict[str, Any]]:
    """Per kind: how often the rank that calls it most did in one call, and the µs that it was at work there."""
    counts: dict[str, int] = {}
    spent: dict[str, float] = {}
    for trace in traces:
        mine: dict[str, int] = {}
        times: dict[str, float] = {}
        for event in _last(trace):
            if event.kind == "cpu_op" and event.name.startswith("c10d::"):
                bare = event.name.removeprefix("c10d::").removesuffix("_")
                name = _NAMES.get(bare, bare)
                if name not in _KNOWN:
                    continue
                mine[name] = mine.get(name, 0) + 1
            elif event.moves and ":" in event.name:
                name = event.name.partition(":")[2]
                times[name] = times.get(name, 0.0) + event.duration
        for name, count in mine.items():
            counts[name] = max(counts.get(name, 0), count)
        for name, time in times.items():
            spent[name] = max(spent.get(name, 0.0), time)
    return [
        {"name": name, "calls": count, "us": _time_of(name, spent)} for name, count in sorted(counts.items())
    ]


def _time_of(name: str, spent: dict[str, float]) -> float | None:
    """The backends name the flat forms as the plain ones; None where the backend tells no time."""
    for known in (name, name.removesuffix("_into_tensor").removesuffix("_tensor").removesuffix("_single")):
        if known in spent:
            return round(spent[known], 1)
    return None
