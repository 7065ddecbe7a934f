"""Slots in card memory, as many lanes as a batch has calls, and the chain of turns that the cards take by themselves.

The gate (design section 5): per call the supervisor's own stream puts the inputs in place, lets the rank's stream go
on, waits for its word that the outputs are there, and copies them out. A rank never sees the inputs of a call before
the outputs of the call before have been taken, though its host enqueues everything ahead.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from evaluator.harness.errors import JudgeFault, NoCards
from evaluator.harness.rank.cards import DONE, GO, Region, ready, wait_for, write_word
from evaluator.harness.slots import Place

Staged = list[list[torch.Tensor]]
"""[call][rank]: inputs in the supervisor's own memory on the rank's card, uint8."""
LOOK_EVERY_S, RELEASE_S = 0.005, 10.0


class RankSlots:
    """What one rank's card holds for it: lanes of inputs and outputs, and the words of the gate."""

    def __init__(self, device: int, lanes: int, inputs_bytes: int, outputs_bytes: int) -> None:
        ready(device)
        self.device = device
        self.regions = [
            Region.create(device, size) for size in (lanes * inputs_bytes, lanes * outputs_bytes, 1)
        ]
        inputs, outputs, self.flags = self.regions
        self.inputs = [Place(inputs.bytes(n * inputs_bytes, inputs_bytes)) for n in range(lanes)]
        self.outputs = [Place(outputs.bytes(n * outputs_bytes, outputs_bytes)) for n in range(lanes)]
        self.flags.bytes(0, 4096).zero_()
        self.stream = torch.cuda.Stream(device)
        self.start = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        """A word in host memory at which the chain waits for the clock."""
        torch.cuda.synchronize(device)

    def export(self) -> list[int]:
        """Descriptors of inputs, outputs and words."""
        return [region.export() for region in self.regions]

    def close(self) -> None:
        """Give the memory back; the job must be dead."""
        torch.cuda.synchronize(self.device)
        self.inputs.clear()
        self.outputs.clear()
        for region in self.regions:
            region.close()
        self.regions.clear()


class Gate:
    """One batch of turns on all cards. Calls are numbered from `base`, which grows from batch to batch."""

    def __init__(self, slots: list[RankSlots], base: int) -> None:
        self.slots, self.base = slots, base
        self.outputs: Staged = []
        self.inputs: Staged = []

    def enqueue(self, staged: Staged, keep_inputs: bool) -> None:
        """The whole chain on every card, stopped before its first step. `keep_inputs`: take the inputs back out too."""
        for rank, own in enumerate(self.slots):
            with torch.cuda.device(own.device), torch.cuda.stream(own.stream):
                handle = own.stream.cuda_stream
                wait_for(handle, own.start.data_ptr(), self.base)
                for index, ranks in enumerate(staged):
                    lane = own.inputs[index].flat
                    lane[: ranks[rank].numel()].copy_(ranks[rank], non_blocking=True)
                    write_word(handle, own.flags.address + GO, self.base + index)
                    wait_for(handle, own.flags.address + DONE, self.base + index)
                    self.outputs[index][rank].copy_(own.outputs[index].flat, non_blocking=True)
                    if keep_inputs:
                        size = self.inputs[index][rank].numel()
                        self.inputs[index][rank].copy_(lane[:size], non_blocking=True)

    def make_room(self, staged: Staged, keep_inputs: bool) -> None:
        """Memory for what is taken out, before anything is enqueued."""
        for index, ranks in enumerate(staged):
            self.outputs.append([torch.empty_like(own.outputs[index].flat) for own in self.slots])
            if keep_inputs:
                self.inputs.append([torch.empty_like(flat) for flat in ranks])
        for own in self.slots:
            torch.cuda.synchronize(own.device)

    def open(self) -> None:
        """Let the chains begin."""
        for own in self.slots:
            own.start[0] = self.base

    def run(self, limit_s: float, check: Callable[[], None]) -> float | None:
        """Wait for the chains' ends; the moment of the last, or None at the limit. `check` may raise meanwhile."""
        until = time.perf_counter() + limit_s
        look = time.perf_counter() + LOOK_EVERY_S
        while not all(own.stream.query() for own in self.slots):
            now = time.perf_counter()
            if now > until:
                return None
            if now > look:
                check()
                look = now + LOOK_EVERY_S
        return time.perf_counter()

    def release(self, calls: int) -> None:
        """Let a chain end whose rank will never answer. The job must be dead: its kernels could write the word."""
        self.open()
        for own in self.slots:
            with torch.cuda.device(own.device):
                other = torch.cuda.Stream(own.device)
                write_word(other.cuda_stream, own.flags.address + DONE, self.base + calls)
        until = time.perf_counter() + RELEASE_S
        while not all(own.stream.query() for own in self.slots):
            if time.perf_counter() > until:
                raise JudgeFault("the cards do not come to rest after a job was ended")


def demand_cards(cards: list[int]) -> None:
    """Raise NoCards unless this host has them."""
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    missing = sorted(set(cards) - set(range(there)))
    if missing:
        raise NoCards(there, missing)
