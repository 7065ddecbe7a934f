"""The look at a submission after its score: trace, mechanisms, findings, timeline. None of it can change a verdict."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.diagnose import findings, movement
from evaluator.diagnose.native_facts import NativeFacts
from evaluator.diagnose.timeline import timeline
from evaluator.diagnose.trace import RankTrace, chrome, read
from evaluator.harness import encode
from evaluator.harness.job import Job
from evaluator.harness.reports import JobFailed

log = logging.getLogger(__name__)

WARM_CALLS, TRACED_CALLS = 2, 3
TRACE, TIMELINE = "trace.json.gz", "timeline.json"
MAX_TRACE = 8 << 20
"""Bytes of a stored trace, compressed; beyond, the shortest events are left out."""


@dataclass
class Look:
    """What was seen; empty where nobody looked or the ranks could not go on."""

    traces: list[RankTrace] = field(default_factory=list)
    note: str = ""

    @property
    def device_peak(self) -> int | None:
        """Bytes on the cards, all ranks together; None unless every rank told."""
        peaks = [trace.device_peak for trace in self.traces]
        return sum(peak or 0 for peak in peaks) if peaks and None not in peaks else None

    def tell(self, facts: Sequence[NativeFacts], *, cards: bool, detail: bool) -> dict[str, Any]:
        """The parts of the result that come of it."""
        unread = Look(note="what the profiler saw could not be read; the verdict is of the calls before it")
        for seen, built in ((self, facts), (unread, facts)):
            try:
                return seen._told(built, cards=cards, detail=detail and seen is self)
            except Exception as error:  # noqa: BLE001 (what a rank or a compiler tells must never cost the result)
                log.warning("a trace or a build could not be told: %r", error)
        return unread._told([], cards=cards, detail=False)

    def _told(self, facts: Sequence[NativeFacts], *, cards: bool, detail: bool) -> dict[str, Any]:
        found = movement.tell(self.traces, facts, cards=cards)
        notes = [self.note, *(f"rank {t.rank}: {note}" for t in self.traces for note in t.notes)]
        told = findings.find(self.traces, native=bool(facts)) if detail else []
        return {
            **found,
            "look_notes": [note for note in notes if note][:8],
            "findings": [finding.shown() for finding in told],
            "kernels": [row for fact in facts for row in fact.kernels()],
        }

    def artifacts(self) -> dict[str, bytes]:
        """Files to keep beside the result: a Chrome trace (gzip) and the timeline that the page draws."""
        try:
            drawn = timeline(self.traces)
        except Exception as error:  # noqa: BLE001 (as above)
            log.warning("a timeline could not be drawn: %r", error)
            return {}
        if drawn is None:
            return {}
        return {TRACE: packed(self.traces), TIMELINE: json.dumps(drawn).encode()}


def look(job: Job, call: list[encode.Packed], limit_s: float, *, detail: bool, calls: int = 1) -> Look:
    """Have every rank make `calls` more calls under its profiler. `detail`: warm up, trace more, log operators."""
    warm, calls = (WARM_CALLS, TRACED_CALLS) if detail else (0, calls)
    try:
        blobs = job.look(call, limit_s, warm=warm, calls=calls, detail=detail)
    except JobFailed as failure:
        return Look(note=f"the traced call failed ({failure.kind}); the verdict is of the calls before it")
    try:
        return Look(read(blobs))
    except Exception as error:  # noqa: BLE001 (what a rank tells must never cost the result)
        log.warning("a trace could not be read: %r", error)
        return Look(note="what the profiler saw could not be read; the verdict is of the calls before it")


def packed(traces: Sequence[RankTrace]) -> bytes:
    """A gzip file that Perfetto and chrome://tracing open, at most MAX_TRACE bytes."""
    events = list(chrome(traces))
    while True:
        text = json.dumps({"displayTimeUnit": "ms", "traceEvents": events}).encode()
        tool = zlib.compressobj(6, zlib.DEFLATED, 31)
        data = tool.compress(text) + tool.flush()
        if len(data) <= MAX_TRACE:
            return data
        lengths = sorted((event.get("dur", 1e18) for event in events), reverse=True)
        least = lengths[len(lengths) // 2]
        events = [event for event in events if event.get("dur", 1e18) > least]
