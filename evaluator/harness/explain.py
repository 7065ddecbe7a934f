"""Why might an answer be wrong? Guesses that are tried out, never verdicts.

The one guess so far: the communication is missing. The reference (our own code) is run here once per
rank under collectives that only copy local data; when the submission's outputs agree with that on
every rank, the author is told so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

from evaluator.harness import encode
from evaluator.harness.check import check_rank
from evaluator.harness.localcomm import no_communication
from evaluator.harness.rank.recipe import Decoder, reader
from problems.leaves import Answer, tensors
from problems.registry import Problem


class _Everyone(dict[Any, Any]):
    """Any group: the local collectives never look at it."""

    def __missing__(self, key: Any) -> Any:
        return None


@contextmanager
def _pretend(rank: int, world_size: int) -> Iterator[None]:
    with (
        mock.patch.object(dist, "get_rank", return_value=rank),
        mock.patch.object(dist, "get_world_size", return_value=world_size),
        mock.patch.object(dist, "is_initialized", return_value=True),
        no_communication(),
    ):
        yield


def _alone(problem: Problem, packed: encode.Packed, rank: int, world_size: int) -> Answer:
    """The reference's answer on one rank that hears from nobody."""
    buffer = memoryview(bytearray(max(packed.nbytes, 1)))
    encode.write(packed, torch.frombuffer(buffer, dtype=torch.uint8))
    factories = problem.module("factories") if (problem.folder / "factories.py").exists() else None
    decoder = Decoder(reader(buffer), _Everyone(), factories)
    args = [decoder.decode(node) for node in packed.recipe]
    with _pretend(rank, world_size):
        output = problem.module("reference").solution(*args)
    inout = {a.name: args[i] for i, a in enumerate(problem.arguments) if a.role == "inout" and i < len(args)}
    return Answer(output, inout)


def without_communication(problem: Problem, packed: list[encode.Packed], got: list[Answer]) -> bool:
    """Whether every rank's answer is what the reference gives when nothing is exchanged."""
    try:
        for rank, (item, answer) in enumerate(zip(packed, got, strict=True)):
            if check_rank(problem, answer, _alone(problem, item, rank, len(packed)), rank):
                return False
    except Exception:  # noqa: BLE001 (a reference that can't run alone: no guess)
        return False
    return True


def is_own_argument(args: list[list[Any]], got: list[Answer]) -> bool:
    """Whether on every rank an output equals, bit for bit, one of the rank's own arguments."""
    for mine, answer in zip(args, got, strict=True):
        sources = [leaf for _, leaf in tensors(list(mine))]
        outputs = [leaf for _, leaf in tensors(answer.output)]
        if not any(
            out.shape == source.shape and out.dtype == source.dtype and bool((out == source).all())
            for out in outputs
            for source in sources
        ):
            return False
    return True
