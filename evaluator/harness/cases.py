"""The calls of one score: secret inputs for all ranks, the same for reference and submission."""

from __future__ import annotations

import os
import secrets
import warnings
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.harness import encode, gate
from problems.leaves import Answer, tensors
from problems.registry import Problem

KEEP_BYTES = {"cpu": 256 << 20, "cuda": 2 << 30}
"""Bytes of made calls and of answers that are kept: hosts with cards have the memory, and large draws are slow."""
SPARE_BYTES = 1 << 14
MAKERS = 16
VARYING = 5
"""Times the largest output of the trials, where outputs differ in size (problem 64: from 14,000 to 45,000 edges)."""


@dataclass
class Call:
    """One call: arguments per rank, and their packed form."""

    number: int
    args: list[list[Any]]
    packed: list[encode.Packed]


class Cases:
    """Makes calls from a secret seed; a few recent ones are kept, the rest is made again on demand."""

    def __init__(
        self, problem: Problem, size: str, world_size: int, seed: int | None = None, device: str = "cpu"
    ) -> None:
        self.problem, self.size, self.world_size = problem, size, world_size
        self.device = device
        self.seed = secrets.randbits(128) if seed is None else seed
        self._kept: OrderedDict[int, Call] = OrderedDict()
        self._bytes = 0
        self._limit = KEEP_BYTES[device]
        self._answers: dict[int, list[Answer]] = {}
        self._largest = 0

    def call(self, number: int) -> Call:
        """Call number `number` (0, 1, …); always the same values for one seed."""
        if number in self._kept:
            return self._kept[number]
        args = gate.build(self.problem, self.size, self.world_size, self.seed, number)
        made = Call(number, args, [encode.pack(rank) for rank in args])
        self._kept[number] = made
        self._bytes += sum(item.nbytes for item in made.packed)
        self._largest = max(self._largest, *(item.nbytes for item in made.packed))
        while self._bytes > self._limit and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            self._bytes -= sum(item.nbytes for item in old.packed)
        return made

    def many(self, first: int, count: int) -> list[Call]:
        """Calls `first` to `first + count - 1`, made side by side and not kept."""

        def make(number: int) -> Call:
            args = gate.build(self.problem, self.size, self.world_size, self.seed, number)
            return Call(number, args, [encode.pack(rank) for rank in args])

        workers = max(1, min(count, len(os.sched_getaffinity(0)) // 2, MAKERS))
        with ThreadPoolExecutor(workers) as pool:
            made = list(pool.map(make, range(first, first + count)))
        self._largest = max(self._largest, *(item.nbytes for call in made for item in call.packed))
        return made

    @property
    def largest(self) -> int:
        """Bytes of the largest packed arguments of one rank, over all calls made so far."""
        return self._largest

    def answers(self, number: int) -> list[Answer]:
        """The truth for all ranks in float64; kept while it is small."""
        if number in self._answers:
            return self._answers[number]
        call = self.call(number)
        found = self._golden(call)
        held = sum(_nbytes(kept) for kept in self._answers.values())
        if held + _nbytes(found) <= self._limit:
            self._answers[number] = found
        return found

    def _golden(self, call: Call) -> list[Answer]:
        """Golden on the card where there is one, else, or where it cannot run there, on the CPU."""
        if self.device == "cuda":
            try:
                return gate.golden(self.problem, call.args, self.size, self.world_size, device="cuda")
            except (RuntimeError, TypeError, ValueError) as error:
                reason = " ".join(str(error).splitlines()[:1])
                warnings.warn(f"{self.problem.slug}: golden runs on the CPU: {reason}", stacklevel=2)
                torch.cuda.empty_cache()  # golden wants the CPU, or more memory than the card has free
                self.device = "cpu"
        return gate.golden(self.problem, call.args, self.size, self.world_size)


def _nbytes(answers: list[Answer]) -> int:
    trees = [[answer.output, answer.inout] for answer in answers]
    return sum(leaf.numel() * leaf.element_size() for _, leaf in tensors(trees))


def slot_sizes(cases: Cases, answers: list[list[Answer]]) -> tuple[int, int]:
    """Bytes for the input and output slots, with room for shapes that vary from call to call.

    `answers` are those of the trials, whose calls have been made already. Outputs whose size depends on the values get
    more room: among five draws the largest may be missing.
    """
    outputs = [
        sum(8 * leaf.numel() + encode.ALIGN for _, leaf in tensors(answer.output))
        for ranks in answers
        for answer in ranks
    ]
    by_rank = zip(*answers, strict=True)
    varies = any(len({_numel(answer) for answer in calls}) > 1 for calls in by_rank)
    return 2 * cases.largest + SPARE_BYTES, (VARYING if varies else 2) * max(outputs, default=0) + SPARE_BYTES


def _numel(answer: Answer) -> int:
    return sum(leaf.numel() for _, leaf in tensors(answer.output))
