"""Timing on cards: pairs of batches in stream mode and under the gate (design section 5).

Per side and pair the ranked time is the larger of two: stream mode less its handshake, and the gate less what empty
turns cost. A file that merges calls or works ahead is fast in stream mode only; the gate is what it then gets. For
honest files both tell the same, unless the host launches more slowly than the card works: then stream is the larger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from evaluator.harness import verdict
from evaluator.harness.cardjob import Batch, CardJob, stage
from evaluator.harness.cardslots import Staged
from evaluator.harness.cases import Call, Cases
from evaluator.harness.errors import JudgeFault
from evaluator.harness.job import Job, Turn
from evaluator.harness.protocol import Plan, Session, Verdicted, answers_of
from evaluator.harness.reports import JobFailed
from evaluator.harness.stats import Speedup, speedup
from problems.registry import Problem

LANES = 24
GATED = 8
WARM_SHARE = 3
"""One call in three of a stream batch goes before the clock."""
LANES_BYTES = 4 << 30
"""Most card memory for one job's lanes."""
BATCH_BYTES = 256 << 20
"""Inputs of one rank's slots in a batch that are made without much ado."""
FEWEST = 4
"""Calls of a batch where one alone takes as much: one before the clock, and three."""
TIRED = 2
"""Calls of a batch for a file whose calls have taken too long by then (`protocol.ENOUGH_S`)."""
LEAST_PAIRS, LEAST_WARMUP = 6, 2
QUICK_S, PAPER_S = 3.0, 30.0
GATE_S = 4e-4
"""What a gated call costs about, beside its work: for the plan only."""
COSTS, BLOCKS = 7, 5
CALM_CALLS, CALM_TRIES = 4, 5
RESTLESS = 2.0
"""So many times as long an empty turn takes at least while somebody else's kernel is on a card: its time slices."""
SLOWED = 1.15
"""The reference under the gate in pairs, against alone. Beside honest files at most 1.06 (8 `paper` scores, h200x2)."""
IDLE = 0.10
"""Cards that the reference leaves idle for more than this share of a call wait for launches: what a score may drift."""
TIE_S = 3e-6
"""Two times per call that are closer than this are not told apart: as far as a file can move the gate."""


@dataclass
class CardTiming:
    """Raw figures, seconds per call: (reference, solution) per pair."""

    lanes: int
    stream: list[tuple[float, float]] = field(default_factory=list)
    gate: list[tuple[float, float]] = field(default_factory=list)
    device: list[tuple[float | None, float | None]] = field(default_factory=list)
    """By the ranks' own CUDA events around the stream batch: a diagnostic."""
    host: list[tuple[float | None, float | None]] = field(default_factory=list)
    stream_cost: float = 0.0
    gate_cost: float = 0.0
    alone: list[float] = field(default_factory=list)
    """The reference under the gate with no other job at work, before and after the pairs."""
    calls: int = 0
    """Timed calls of either side."""
    restless: int = 0
    """Times that the cards were not at rest before a turn of the reference."""
    queued: int = 0
    """Gated batches of the solution that were enqueued whole before the gate opened."""

    def net(self, stream: float, gate: float) -> tuple[float, float]:
        """Stream mode and gate less what they cost by themselves; the first never less than half."""
        return max(stream - self.stream_cost, stream / 2), max(gate - self.gate_cost, 0.0)

    def ranked(self, stream: float, gate: float) -> float:
        """The time that counts."""
        return max(self.net(stream, gate))

    @property
    def below_resolution(self) -> bool:
        """Whether the two sides differ by less than the gate can tell."""
        pairs = zip(self.stream, self.gate, strict=True)
        gaps = [self.ranked(s[1], g[1]) - self.ranked(s[0], g[0]) for s, g in pairs]
        return bool(gaps) and abs(median(gaps)) < TIE_S

    @property
    def slowed(self) -> bool:
        """Whether the cards did the reference's work far slower between the submission's turns than alone.

        By the gate, which leaves the host's pace out. What a file left at work on a card, or on a link, where no empty
        turn need wait for it, is over once its job is.
        """
        if not self.alone or not self.gate:
            return False
        alone = max(max(self.alone) - self.gate_cost, 0.0)
        return median(pair[0] for pair in self.gate) - self.gate_cost > SLOWED * alone + TIE_S / 2

    @property
    def resolution(self) -> float:
        return TIE_S

    def on_the_card(self) -> Speedup | None:
        """The speedup by the gate alone, which leaves the host's launches out; None where a call takes no time."""
        nets = [(a - self.gate_cost, b - self.gate_cost) for a, b in self.gate]
        return speedup(nets) if nets and all(a > 0 and b > 0 for a, b in nets) else None

    def shown(self) -> dict[str, Any]:
        """Raw figures for the result, ms per call."""

        def middle(side: int, rows: list[tuple[Any, Any]]) -> float | None:
            told = [row[side] for row in rows if row[side] is not None]
            return 1e3 * median(told) if told else None

        return {
            "lanes": self.lanes,
            "gated": min(GATED, self.lanes),
            "stream_cost_ms": 1e3 * self.stream_cost,
            "gate_cost_ms": 1e3 * self.gate_cost,
            "queued": self.queued,
            "restless": self.restless,
            **{
                f"{name}_{what}_ms": middle(side, rows)
                for side, name in enumerate(("reference", "solution"))
                for what, rows in (
                    ("stream", self.stream), ("gate", self.gate), ("events", self.device), ("enqueue", self.host)
                )
            },
            "on_the_card": asdict(found) if (found := self.on_the_card()) else None,
            "stream_samples": [[1e3 * a, 1e3 * b] for a, b in self.stream],
            "gate_samples": [[1e3 * a, 1e3 * b] for a, b in self.gate],
        }  # fmt: skip

    @property
    def launch_bound(self) -> bool:
        """Whether the card was idle for more than half of the solution's call."""
        nets = [self.net(s[1], g[1]) for s, g in zip(self.stream, self.gate, strict=True)]
        return bool(nets) and median(gate for _, gate in nets) < median(stream for stream, _ in nets) / 2


def lanes_for(inputs_bytes: int, outputs_bytes: int) -> int:
    """How many calls a batch may have: 24, or as many as fit; of large calls as few as 8, of huge ones 4.

    Every call has new values, which the host makes: of large calls a batch of 24 would take seconds to prepare.
    """
    fitting = LANES_BYTES // (inputs_bytes + outputs_bytes)
    quick = max(GATED if inputs_bytes <= BATCH_BYTES else FEWEST, BATCH_BYTES // inputs_bytes)
    return max(1, min(LANES, fitting, quick))


def plan(protocol: str, t_reference: float, lanes: int, t_making: float = 0.0) -> Plan:
    """Pairs of two stream batches of `lanes` calls and one gated batch of at most 8 per side.

    quick, profile: as many pairs as 3 s allow, 6 to 10; paper: as 30 s allow, 10 to 20. What the host needs to make
    the values of a call (`t_making`, seconds) counts: of large calls it takes most of the time. Warm-up is counted in
    batches.
    """
    if protocol == "check":
        return Plan("check", False, 0, 0, 0)
    gated = min(GATED, lanes)
    pair = 2 * (2 * lanes * t_reference + gated * (t_reference + GATE_S)) + (2 * lanes + gated) * t_making
    if protocol == "paper":
        warm = max(LEAST_WARMUP, min(10, int(1.0 / (lanes * (t_reference + t_making)))))
        pairs = max(10, min(20, int(PAPER_S / pair)))
    else:
        pairs, warm = max(LEAST_PAIRS, min(10, int(QUICK_S / pair))), LEAST_WARMUP
    return Plan(protocol, True, pairs, lanes, warm)


class CardSession(Session):
    """A session whose jobs are `CardJob`s."""

    least_pairs = LEAST_PAIRS

    def __init__(
        self,
        problem: Problem,
        cases: Cases,
        reference: Job,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        super().__init__(problem, cases, reference, should_stop)
        if not isinstance(reference, CardJob):
            raise JudgeFault("a card session needs card jobs")
        self.cards, self.lanes = reference.cards, reference.lanes
        self.card = self.timing.card = CardTiming(self.lanes)
        self._unread: list[tuple[list[Call], Staged]] = []
        self._block: tuple[bool, float] | None = None
        """Of the first reference block: whether launches set its pace, and the gate's cost then."""

    def _new_calls(self, count: int) -> tuple[list[Call], Staged]:
        calls = self.cases.many(self.next_call, count)
        self.next_call += count
        return calls, stage([call.packed for call in calls], self.cards)

    def _batch(
        self, job: Job | None, kind: str, calls: list[Call], staged: Staged, *, empty: bool = False
    ) -> Batch:
        """One batch of either job; a failure is the reference's (ours) or the submission's (its verdict)."""
        self.stop_if_asked()
        if not isinstance(job, CardJob):
            raise JudgeFault("the submission's job was not started")
        packed = [call.packed for call in calls]
        limit = self.limit * max(1, len(calls) // 4)
        began = time.perf_counter()
        try:
            if kind == "stream":
                batch = job.stream(packed, staged, limit, warm=len(calls) // WARM_SHARE, empty=empty)
            else:
                batch = job.gate(packed, staged, limit, empty=empty)
        except JobFailed as failure:
            if job is self.reference:
                told = verdict.from_failure(failure).message
                raise JudgeFault(f"the reference failed in a {kind} batch: {told}") from failure
            raise self.blamed(failure, job) from failure
        if job is self.reference:
            if any(batch.late) or any(index is not None for row in batch.changed for index in row):
                raise JudgeFault("the reference changed an input or wrote after it was done")
        else:
            self.spent += time.perf_counter() - began
            self.built_late |= batch.built_late
            for rank, late in enumerate(batch.late):
                if late:
                    raise Verdicted(verdict.late_write(rank))
        return batch

    def plan(self, protocol: str) -> Plan:
        """From the reference's time in stream mode, once its kernels are warm.

        Nothing that the submission left behind in the trials may slow it, or the making of values: there would be fewer
        pairs.
        """
        if protocol == "check":
            return plan(protocol, 1.0, self.lanes)
        self._let_go()
        self._await_rest()
        count = min(4, self.lanes)
        began = time.perf_counter()
        calls, staged = self._new_calls(count)
        making = (time.perf_counter() - began) / count
        for _ in range(2):
            seconds = self._batch(self.reference, "stream", calls, staged).seconds
        return plan(protocol, max(1e-6, seconds), self.lanes, making)

    def warm_up(self, count: int) -> None:
        """Batches that look like any other, and the first gated ones; every output is compared."""
        for number in range(count):
            if number >= LEAST_WARMUP and self._tired:
                break
            batches = self._both(["stream", "gate"] if number < LEAST_WARMUP else ["stream"])
            self._compare(batches, f"warm-up batch {number + 1}")
            self.timing.warmup += len(batches["stream"][0])
        self.measure_costs()

    def measure_handshake(self) -> None:
        """Also what empty turns on the cards cost, where no line of the file has run yet."""
        super().measure_handshake()
        self.measure_costs()

    def measure_costs(self) -> None:
        """What turns cost in which nothing is done: empty batches of the reference's job, which we can believe.

        Of several measurements the least stands: whoever disturbs one can only make it longer.
        """
        calls, staged = self._idle()
        gated = min(GATED, self.lanes)
        streams, gates = [], []
        for _ in range(COSTS):
            streams.append(self._batch(self.reference, "stream", calls, staged, empty=True).seconds)
            gates.append(
                self._batch(self.reference, "gate", calls[:gated], staged[:gated], empty=True).seconds
            )
        known = self.card.gate_cost > 0
        self.card.stream_cost = min(median(streams), self.card.stream_cost if known else math.inf)
        self.card.gate_cost = min(median(gates), self.card.gate_cost if known else math.inf)

    def _idle(self) -> tuple[list[Call], Staged]:
        """Calls for empty turns, whose values nobody reads."""
        if not self._unread:
            self._unread = [self._new_calls(self.lanes)]
        return self._unread[0]

    def _await_rest(self) -> None:
        """Nothing of the submission is at work on the cards when the reference's turn comes, or it is rejected.

        Its host threads are frozen, but a kernel that it left behind would share the card with the reference. While one
        runs, every empty turn waits for its time slices.
        """
        calls, staged = self._idle()
        few = min(CALM_CALLS, self.lanes)
        for _ in range(CALM_TRIES):
            cost = self._batch(self.reference, "gate", calls[:few], staged[:few], empty=True).seconds
            if cost < RESTLESS * self.card.gate_cost:
                return
            self.card.restless += 1
        raise Verdicted(verdict.background())

    def reference_block(self) -> float:
        """Seconds per call of the reference with no other job on the host: by the gate where launches set its pace.

        How fast a host launches changes within seconds by more than a score may drift; the pairs' interval shows that.
        What must be the same before and after is the pace of what works: the cards, for a reference that waits for its
        launches. Which of the two counts, and what the gate costs, is settled at the first block.
        """
        gated = min(GATED, self.lanes)
        streams, gates = [], []
        for _ in range(1 + BLOCKS):
            calls, staged = self._new_calls(self.lanes)
            streams.append(self._batch(self.reference, "stream", calls, staged).seconds)
            gates.append(self._batch(self.reference, "gate", calls[:gated], staged[:gated]).seconds)
        stream, gate = median(streams[1:]), median(gates[1:])
        self.card.alone.append(gate)
        if self._block is None:
            by_stream, by_gate = self.card.net(stream, gate)
            self._block = (by_gate < (1 - IDLE) * by_stream, self.card.gate_cost)
        waits, cost = self._block
        return max(gate - cost, TIE_S) if waits else stream

    def _both(self, kinds: list[str]) -> dict[str, tuple[list[Call], Batch, Batch]]:
        """New calls for each kind; (calls, reference's batch, submission's batch), in random order."""
        stream = min(self.lanes, TIRED) if self._tired else self.lanes
        sizes = {"stream": stream, "gate": min(GATED, stream)}
        # All at once: large calls take longer to make than to run, and they are made side by side.
        calls, staged = self._new_calls(sum(sizes[kind] for kind in kinds))
        made, at = {}, 0
        for kind in kinds:
            made[kind] = calls[at : at + sizes[kind]], staged[at : at + sizes[kind]]
            at += sizes[kind]
        order = [True, False]
        self.rng.shuffle(order)
        done: dict[tuple[str, bool], Batch] = {}
        for is_reference in order:
            done.update(self._turn_of(is_reference, made))
        return {kind: (made[kind][0], done[kind, True], done[kind, False]) for kind in kinds}

    def _turn_of(
        self, is_reference: bool, made: dict[str, tuple[list[Call], Staged]]
    ) -> dict[tuple[str, bool], Batch]:
        """One side's batches of a pair."""
        job = self.reference if is_reference else self.submission
        if is_reference:
            self._let_go()
            self._await_rest()
        done = {(kind, is_reference): self._batch(job, kind, *made[kind]) for kind in made}
        if is_reference:
            self.note_disturbance()
        return done

    def _compare(self, batches: dict[str, tuple[list[Call], Batch, Batch]], where: str) -> None:
        for kind, (calls, theirs, mine) in batches.items():
            for index, call in enumerate(calls):
                want = _turn(theirs, index)
                self.judge(
                    call, _turn(mine, index), want, answers_of(want), f"{where}, {kind} call {index + 1}"
                )

    def run_pair(self, size: int, number: int) -> None:
        """One pair: per side a gated batch and two in stream mode, on the same calls; each compared.

        Of the two the quicker counts: a host that takes a core away now and then makes single batches twice as long.
        """
        batches = self._both(["stream", "gate"])
        self._compare(batches, f"timed pair {number + 1}")
        again = self._both(["stream"])
        self._compare(again, f"timed pair {number + 1}, again")
        (_, *first), (_, *second), (_, gate_r, gate_s) = batches["stream"], again["stream"], batches["gate"]
        stream_r, stream_s = (
            min(two, key=lambda batch: batch.seconds) for two in zip(first, second, strict=True)
        )
        card, timing = self.card, self.timing
        card.calls += sum(
            len(calls) - len(calls) // WARM_SHARE for calls in (batches["stream"][0], again["stream"][0])
        )
        card.calls += len(batches["gate"][0])
        card.stream.append((stream_r.seconds, stream_s.seconds))
        card.gate.append((gate_r.seconds, gate_s.seconds))
        card.device.append((stream_r.device_s, stream_s.device_s))
        card.host.append((stream_r.host_s, stream_s.host_s))
        card.queued += gate_s.queued
        timing.pairs.append(
            (card.ranked(stream_r.seconds, gate_r.seconds), card.ranked(stream_s.seconds, gate_s.seconds))
        )
        timing.reference_calls.append(stream_r.seconds)
        timing.solution_calls.append(stream_s.seconds)
        timing.block = size


def _turn(batch: Batch, index: int) -> Turn:
    """One call of a batch, as the comparison takes it."""
    ranks = len(batch.claims[index])
    return Turn(
        seconds=batch.seconds,
        claims=batch.claims[index],
        outputs=batch.outputs[index],
        inout=batch.inout[index],
        changed=batch.changed[index],
        late=[False] * ranks,
        unfinished=[None] * ranks,
        shared=batch.shared[index],
    )
