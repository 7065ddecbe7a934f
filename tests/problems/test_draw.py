"""What is drawn for the inputs of a call, and what it must not tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from problems.draw import Draw


def test_the_same_draws_in_the_same_order_are_the_same() -> None:
    one, two = Draw(7, 3), Draw(7, 3)
    for _ in range(3):
        assert torch.equal(one.values((4, 5)), two.values((4, 5)))
    assert one.splits(10, 3) == two.splits(10, 3)


@pytest.mark.parametrize("other", [(8, 3), (7, 4), (7, -3), (7 + (1 << 64), 3)])
def test_another_seed_or_call_draws_other_values(other: tuple[int, int]) -> None:
    mine, theirs = Draw(7, 3).payload((64,)), Draw(*other).payload((64,))
    assert (mine.view(torch.int16) == theirs.view(torch.int16)).float().mean() < 0.1


def test_consecutive_draws_are_of_generators_that_have_nothing_in_common() -> None:
    draw = Draw(1 << 100, 0)
    states = [draw._next().bit_generator.state["state"] for _ in range(50)]
    keys = {tuple(state["key"].tolist()) for state in states}
    counters = {tuple(state["counter"].tolist()) for state in states}
    assert len(keys) == len(counters) == 50


def test_the_generator_keeps_no_state_that_its_output_gives_away() -> None:
    """SFC64, PCG and the like are computed backwards from a few words; a keyed counter is not."""
    assert isinstance(Draw(1, 1)._next().bit_generator, np.random.Philox)
