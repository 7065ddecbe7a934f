"""The calls of one score: secret inputs for all ranks, the same for reference and submission."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.harness import encode, gate
from problems.leaves import Answer, tensors
from problems.registry import Problem

KEEP_BYTES = 256 << 20
SPARE_BYTES = 1 << 14


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

    def call(self, number: int) -> Call:
        """Call number `number` (0, 1, …); always the same values for one seed."""
        if number in self._kept:
            return self._kept[number]
        args = gate.build(self.problem, self.size, self.world_size, self.seed, number)
        made = Call(number, args, [encode.pack(rank) for rank in args])
        self._kept[number] = made
        self._bytes += sum(item.nbytes for item in made.packed)
        while self._bytes > KEEP_BYTES and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            self._bytes -= sum(item.nbytes for item in old.packed)
        return made

    def answers(self, number: int) -> list[Answer]:
        """The truth for all ranks in float64."""
        call = self.call(number)
        if self.device == "cuda":
            try:
                return gate.golden(self.problem, call.args, self.size, self.world_size, device="cuda")
            except (RuntimeError, TypeError):
                torch.cuda.empty_cache()  # golden wants the CPU, or more memory than the card has free
        return gate.golden(self.problem, call.args, self.size, self.world_size)


def slot_sizes(cases: Cases, trials: int, answers: list[list[Answer]]) -> tuple[int, int]:
    """Bytes for the input and output slots, with room for shapes that vary from call to call."""
    inputs = max(item.nbytes for n in range(trials) for item in cases.call(n).packed)
    outputs = 0
    for ranks in answers:
        for answer in ranks:
            leaves = tensors(answer.output)
            outputs = max(outputs, sum(8 * leaf.numel() + encode.ALIGN for _, leaf in leaves))
    return 2 * inputs + SPARE_BYTES, 2 * outputs + SPARE_BYTES
