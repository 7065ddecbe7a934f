"""A job whose calls travel through card memory: one call at a time, or batches back to back.

A batch is measured in two ways (design section 5): `stream`, all inputs in place and the ranks calling back to back as
in the paper, and `gate`, where the cards themselves reveal each call's inputs after the outputs of the call before were
taken. What the gate costs is constant and measured with empty calls.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.harness import claims, encode
from evaluator.harness.cardslots import Gate, RankSlots, Staged
from evaluator.harness.errors import JudgeFault
from evaluator.harness.glance import Glance
from evaluator.harness.job import Job
from evaluator.harness.reports import spans
from evaluator.harness.slots import Slot
from evaluator.harness.warm import Template
from problems.registry import Problem

HOST_SLOT = 1 << 20
"""Host memory per rank and direction, for what is not a call: recorded builds, traces."""
POISON_STARTS = 1 << 16
"""Poison begins at one of so many places of a pattern."""
QUEUE_S = 0.02
"""How long the gate waits for ranks to enqueue everything; a file that waits for its card cannot."""


@dataclass
class Batch:
    """What came of a batch. Outputs and inputs are copies on the rank's card."""

    seconds: float
    """Per call, by the outside clock."""
    claims: list[list[Any]] = field(default_factory=list)
    """[call][rank]."""
    outputs: Staged = field(default_factory=list)
    inout: list[list[dict[str, Any]]] = field(default_factory=list)
    shared: list[list[list[tuple[str, int]]]] = field(default_factory=list)
    changed: list[list[int | None]] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)
    """Per rank, whether an output changed after everything was done."""
    device_s: float | None = None
    """Per call by the slowest rank's pair of CUDA events: its own word."""
    host_s: float | None = None
    """Per call what the slowest rank's host took to enqueue it: its own word."""
    queued: bool = False
    """Whether every rank had enqueued the whole batch before the gate was opened."""
    built_late: bool = False


def stage(calls: list[list[encode.Packed]], cards: list[int]) -> Staged:
    """Copies of all inputs in the supervisor's own card memory."""
    staged: Staged = []
    for packed in calls:
        flats = []
        for item, card in zip(packed, cards, strict=True):
            flat = torch.empty(item.nbytes, dtype=torch.uint8)
            encode.write(item, flat)
            flats.append(flat.to(f"cuda:{card}"))
        staged.append(flats)
    return staged


class CardJob(Job):
    """`lanes` calls at most in a batch."""

    def __init__(
        self,
        template: Template,
        problem: Problem,
        role: str,
        files: dict[str, bytes],
        inputs_bytes: int,
        outputs_bytes: int,
        *,
        lanes: int,
        held: bool = False,
    ) -> None:
        self.lanes = lanes
        self._lane_bytes = [_aligned(inputs_bytes), _aligned(outputs_bytes)]
        self.own: list[RankSlots] = []
        self._next = 1
        super().__init__(template, problem, role, files, inputs_bytes, outputs_bytes, held=held)

    def _make_slots(self, inputs_bytes: int, outputs_bytes: int) -> None:
        self.cards = list(self.target.cards or ())
        self.inputs = [Slot(f"in{r}", HOST_SLOT) for r in range(self.world_size)]
        self.outputs = [Slot(f"out{r}", HOST_SLOT) for r in range(self.world_size)]
        self.own = [RankSlots(card, self.lanes, *self._lane_bytes) for card in self.cards]
        self._take_lane(0)
        size = self._lane_bytes[1] + POISON_STARTS
        self._patterns = [
            torch.randint(0, 256, (size,), dtype=torch.uint8, device=f"cuda:{card}") for card in self.cards
        ]
        self._waiting: list[torch.Tensor] = [torch.empty(0)] * self.world_size

    def _take_lane(self, lane: int) -> None:
        """Single calls take turns over the lanes: a file that keeps pointers instead of reading its arguments fails."""
        self._lane = lane
        self.ins = [own.inputs[lane] for own in self.own]
        self.outs = [own.outputs[lane] for own in self.own]

    def _place(self, rank: int, item: encode.Packed, kind: str = "call", **more: Any) -> None:
        if rank == 0:
            self._take_lane((self._lane + 1) % self.lanes)
        super()._place(rank, item, kind, lane=self._lane, **more)

    def _more_fds(self, rank: int) -> list[int]:
        return self.own[rank].export()

    def _order(self, factories: bool) -> dict[str, Any]:
        inputs, outputs = self._lane_bytes
        lanes = {"count": self.lanes, "inputs": inputs, "outputs": outputs}
        return {**super()._order(factories), "lanes": lanes}

    def _pattern_for(self, rank: int) -> torch.Tensor:
        return self._patterns[rank]

    def _fill(self, rank: int, item: encode.Packed) -> None:
        """Inputs wait in memory that no rank can map until the clock runs."""
        (self._waiting[rank],) = stage([[item]], [self.cards[rank]])[0]

    def _reveal(self) -> None:
        for place, waiting in zip(self.ins, self._waiting, strict=True):
            place.flat[: waiting.numel()].copy_(waiting, non_blocking=True)
        self._settle()

    def _glances(self, packed: list[encode.Packed]) -> dict[int, Glance]:
        """None: the clock runs until everything is copied, so that nothing can be written unclocked."""
        return {}

    def _stopped(self) -> float:
        """A card's kernels cannot be frozen: the turn ends once the outputs are copied out."""
        self._settle()
        return time.perf_counter()

    def _settle(self) -> None:
        for card in self.cards:
            torch.cuda.synchronize(card)

    def _prepare(
        self, calls: list[list[encode.Packed]], gate: int | None, *, warm: int = 0, empty: bool = False
    ) -> None:
        """Poison, and the message into the frozen ranks' sockets."""
        if not 0 < len(calls) <= self.lanes:
            raise JudgeFault(f"a batch of {len(calls)} calls does not fit {self.lanes} lanes")
        self._sequence += 1
        for rank, own in enumerate(self.own):
            recipes = []
            for index, packed in enumerate(calls):
                self._demand_fit(rank, packed[rank])
                own.outputs[index].poison(self._patterns[rank], self._poison_from(rank + index))
                recipe = packed[rank].recipe
                recipes.append(None if self._sent_recipe[rank] == recipe else recipe)
                self._sent_recipe[rank] = recipe
            message = {"t": "batch", "seq": self._sequence, "recipes": recipes}
            self._send(rank, {**message, "gate": gate, "warm": warm, "empty": empty})

    def _arm(self, limit_s: float) -> None:
        """Let the ranks run up to where they wait for the word."""
        self.box.thaw()
        self._collect("armed", "call", limit_s)

    def _go(self) -> None:
        """The word that every rank waits for: to begin, and after the end of the clock to tell what it did."""
        for rank, channel in enumerate(self.sockets):
            try:
                channel.send(b"go", socket.MSG_DONTWAIT)
            except OSError as error:
                self.reports[rank].state = "closed"
                raise self._failed("exit", "call", {}, f"rank {rank} closed its socket") from error

    def stream(
        self,
        calls: list[list[encode.Packed]],
        staged: Staged,
        limit_s: float,
        *,
        warm: int = 0,
        empty: bool = False,
    ) -> Batch:
        """All inputs in place, then the calls back to back: seconds from the word to the last rank's end.

        The first `warm` calls go before the word; they are compared like the others.
        """
        for index, ranks in enumerate(staged):
            for own, flat in zip(self.own, ranks, strict=True):
                own.inputs[index].flat[: flat.numel()].copy_(flat, non_blocking=True)
        self._prepare(calls, None, warm=warm, empty=empty)
        self._settle()
        self._arm(limit_s)
        start = time.perf_counter()
        self._go()
        self._collect("ended", "call", limit_s, spin=True)
        seconds = self._woken - start
        outputs = [[own.outputs[index].flat.clone() for own in self.own] for index in range(len(calls))]
        self._settle()
        self._go()
        done = self._collect("done", "call", limit_s)
        inputs = [[own.inputs[index].flat for own in self.own] for index in range(len(calls))]
        batch = Batch(seconds / (len(calls) - warm), outputs=outputs)
        return self._told(batch, [] if empty else calls, staged, inputs, done, len(calls) - warm)

    def gate(
        self, calls: list[list[encode.Packed]], staged: Staged, limit_s: float, *, empty: bool = False
    ) -> Batch:
        """Each call's inputs appear once the outputs of the one before were taken, all of it on the cards."""
        base, self._next = self._next, self._next + len(calls)
        gate = Gate(self.own, base)
        keep = bool(self._inout) and not empty
        gate.make_room(staged, keep)
        self._prepare(calls, base, empty=empty)
        self._settle()
        try:
            gate.enqueue(staged, keep)
            self._arm(limit_s)
            self._go()
            queued = self._await_queued()
            start = time.perf_counter()
            gate.open()
            early: dict[int, dict[str, Any]] = {}
            stop = gate.run(limit_s, lambda: self._check(early))
            if stop is None:
                raise self._failed("deadline", "call", early)
            done = self._collect("done", "call", limit_s, got=early)
        except BaseException:
            self.box.kill()
            gate.release(len(calls))
            raise
        batch = Batch((stop - start) / len(calls), outputs=gate.outputs, queued=queued)
        inputs = gate.inputs or [[own.inputs[i].flat for own in self.own] for i in range(len(calls))]
        return self._told(batch, [] if empty else calls, staged, inputs, done, len(calls))

    def _await_queued(self) -> bool:
        """Whether all ranks say in time that everything is enqueued; a wrong word only opens the gate sooner."""
        got: dict[int, dict[str, Any]] = {}
        for report in self.reports:
            report.state = "waiting"
        until = time.monotonic() + QUEUE_S
        while len(got) < self.world_size and (left := until - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left * 1000):
                self._take(descriptor, "queued", "call", got)
        return len(got) == self.world_size

    def _check(self, early: dict[int, dict[str, Any]]) -> None:
        """Raise JobFailed when a rank has failed or ended while its card is waited for; file who is done already."""
        for descriptor, _ in self._poll.poll(0):
            self._take(descriptor, "done", "call", early)

    def _told(
        self,
        batch: Batch,
        calls: list[list[encode.Packed]],
        staged: Staged,
        inputs: Staged,
        done: list[dict[str, Any]],
        timed: int,
    ) -> Batch:
        """Fill in what the ranks say and what the lanes show of `calls`; leaves the ranks frozen."""
        self._settle()
        self._freeze("call")
        batch.device_s = _device_s(done, timed)
        told = [spans(message.get("spans")) for message in done]
        enqueued = [span.returned - span.began for span in told if span is not None]
        if len(enqueued) == len(told):
            batch.host_s = max(enqueued) / 1e9 / timed
        batch.built_late = any(m.get("built") for m in done)
        by_rank = [_filled(self._list(message.get("claims"), len(calls))) for message in done]
        shared = [self._list(message.get("shared"), len(calls)) for message in done]
        for index, packed in enumerate(calls):
            batch.claims.append([self._claim(claim[index]) for claim in by_rank])
            batch.shared.append([self._shared(words[index]) for words in shared])
            flats = inputs[index]
            batch.inout.append([self._after_in(flat, item) for flat, item in zip(flats, packed, strict=True)])
            batch.changed.append(
                [self._changed(*three) for three in zip(packed, flats, staged[index], strict=True)]
            )
        batch.late = [
            any(not own.outputs[i].same(batch.outputs[i][rank]) for i in range(len(calls)))
            for rank, own in enumerate(self.own)
        ]
        return batch

    def _after_in(self, flat: torch.Tensor, item: encode.Packed) -> dict[str, Any]:
        return {
            name: encode.tree_at(item.recipe[index], flat)
            for index, name in self._inout.items()
            if index < len(item.recipe)
        }

    def _changed(self, item: encode.Packed, flat: torch.Tensor, was: torch.Tensor) -> int | None:
        """The first read-only argument whose bytes differ from those that were put in place."""
        if len(self._kept) == len(item.recipe) and torch.equal(flat[: was.numel()], was):
            return None
        for index, offset, tensor in item.tensors:
            size = tensor.numel() * tensor.element_size()
            if index in self._kept and not torch.equal(
                flat[offset : offset + size], was[offset : offset + size]
            ):
                return index
        return None

    def _list(self, claim: Any, count: int) -> list[Any]:
        if not isinstance(claim, list) or len(claim) != count:
            raise self._failed("protocol", "call", {}, "a rank tells of another number of calls")
        return claim

    def close(self) -> None:
        """Kill everything, then give the card memory back."""
        super().close()
        for own in self.own:
            own.close()
        self.own.clear()
        self.ins, self.outs = [], []
        torch.cuda.empty_cache()


def _filled(claims_told: list[Any]) -> list[Any]:
    """One claim per call: null stands for the one before."""
    filled: list[Any] = []
    for claim in claims_told:
        filled.append(filled[-1] if claim is None and filled else claim)
    return filled


def _aligned(nbytes: int) -> int:
    """Lanes begin where any tensor may."""
    return (nbytes + claims.ALIGN * 4 - 1) // (claims.ALIGN * 4) * (claims.ALIGN * 4)


def _device_s(done: list[dict[str, Any]], calls: int) -> float | None:
    """Seconds per call by the slowest rank's events, where all tell a number."""
    told = [message.get("device_ms") for message in done]
    if not all(isinstance(value, (int, float)) and 0 <= value < 1e9 for value in told):
        return None
    return max(float(value) for value in told if value is not None) / 1e3 / calls
