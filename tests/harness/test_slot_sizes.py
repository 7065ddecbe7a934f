"""How much room the slots have for what a call returns."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evaluator.harness.cases import SPARE_BYTES, slot_sizes
from problems.leaves import Answer


class Made:
    largest = 1000


def answers(*numels: tuple[int, int]) -> list[list[Answer]]:
    """[call][rank] with so many elements."""
    return [[Answer(torch.empty(count)) for count in ranks] for ranks in numels]


@pytest.mark.parametrize(
    ("numels", "times"),
    [
        ([(4000, 4000)] * 5, 2),
        ([(4000, 100)] * 5, 2),  # ranks differ, calls do not
        ([(1500, 1500), (4000, 1500)], 5),
    ],
)
def test_outputs_whose_size_varies_from_call_to_call_have_more_room(
    numels: list[tuple[int, int]], times: int
) -> None:
    made: Any = Made()
    inputs, outputs = slot_sizes(made, answers(*numels))

    assert inputs == 2000 + SPARE_BYTES
    assert times * 8 * 4000 <= outputs - SPARE_BYTES < times * 8 * 4100


def test_the_largest_sample_fits_that_was_drawn_after_small_ones() -> None:
    """Of problem 64: 14,000 edges in all trials, 45,000 in a later call."""
    _, outputs = slot_sizes(Made(), answers(*[(14000, 16000)] * 4, (14500, 15000)))  # type: ignore[arg-type]

    assert outputs >= 8 * 45000
