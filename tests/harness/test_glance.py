"""What is written while other ranks' outputs are still being copied is seen, though the copy agrees with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from evaluator.harness import encode
from evaluator.harness.glance import SPOTS, Glance, drawn, within
from evaluator.harness.job import Job
from evaluator.harness.judge import Judge
from evaluator.harness.slots import Place
from problems.registry import load_problem


def packed(*sizes: int) -> encode.Packed:
    return encode.pack([torch.zeros(size, dtype=torch.uint8) for size in sizes])


def test_spots_lie_in_every_range_and_nowhere_else() -> None:
    ranges = [(64, 10), (128, 0), (192, 30)]
    found = {int(spot) for _ in range(20) for spot in within(drawn(), ranges)}
    assert found == {*range(64, 74), *range(192, 222)}
    assert len(within(drawn(), [])) == len(within(drawn(), [(5, 0)])) == 0


def test_two_draws_differ() -> None:
    assert not torch.equal(drawn(), drawn())
    assert len(drawn()) == SPOTS


def test_late_bytes_are_seen_and_inout_arguments_named() -> None:
    item, outputs, inputs = packed(64, 64, 64), torch.zeros(4096, dtype=torch.uint8), torch.zeros(192).byte()
    glance = Glance(item, {1: "grads", 2: "norms"}, 4096)
    assert not glance.late(outputs)  # nothing was looked at yet
    glance.take(outputs, inputs)
    assert not glance.late(outputs)
    assert glance.unfinished(inputs) is None
    inputs[:64] += 1  # not inout: others look after it
    assert glance.unfinished(inputs) is None
    inputs[128:] += 1
    assert glance.unfinished(inputs) == "norms"
    outputs[2048:] += 1
    assert glance.late(outputs)


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("problem", "slots", "code"),
    [("allreduce", "outs", "rejected.late_write"), ("clip_grad_norm_no_ep", "ins", "incorrect.unfinished")],
)
def test_a_rank_that_is_copied_last_cannot_write_on(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, problem: str, slots: str, code: str
) -> None:
    """At done the last rank's bytes are not yet what they are when the first rank's have been copied."""
    collect, snapshot = Job._collect, Place.snapshot
    at_work: list[Job] = []

    def flip(job: Job) -> None:
        flat = getattr(job, slots)[-1].flat[:4096]
        flat.bitwise_xor_(torch.full_like(flat, 255))

    def done_too_early(
        self: Job, wanted: str, phase: str, *more: Any, **options: Any
    ) -> list[dict[str, Any]]:
        def too_early(look: Any) -> None:
            if self.role == "submission" and not at_work:
                at_work.append(self)
                flip(self)
            look()

        look = options.get("at_last")
        if look is not None:
            options["at_last"] = partial(too_early, look)
        return collect(self, wanted, phase, *more, **options)

    def written_meanwhile(self: Place, nbytes: int) -> torch.Tensor:
        taken = snapshot(self, nbytes)
        if at_work and self is at_work[-1].outs[0]:
            flip(at_work.pop())
        return taken

    monkeypatch.setattr(Job, "_collect", done_too_early)
    monkeypatch.setattr(Place, "snapshot", written_meanwhile)
    reference = load_problem(problem).folder / "reference.py"
    assert judge.score(problem=problem, solution=reference, protocol="check")["code"] == code
