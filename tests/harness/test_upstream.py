"""The label on published values: whatever a rank states there, it is a label and never a fault of ours."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evaluator.harness import upstream
from evaluator.harness.job import Turn

SLOT = 64


def _turn(claim: Any, values: torch.Tensor, nbytes: int = SLOT) -> Turn:
    data = torch.zeros(SLOT, dtype=torch.uint8)
    data[: values.nbytes] = values.view(torch.uint8)
    rows: list[Any] = [None]
    return Turn(1.0, [claim], [data[:nbytes]], [{}], changed=rows, late=[False], unfinished=rows)


def _tensor(dtype: str, *shape: int) -> dict[str, Any]:
    return {"t": [dtype, list(shape)]}


ONES = torch.ones(4)
THEIRS = _turn(_tensor("float32", 4), ONES)


def test_values_are_compared_whatever_their_dtype() -> None:
    assert upstream._close(_turn(_tensor("float32", 4), ONES), THEIRS)
    assert upstream._close(_turn(_tensor("float64", 4), ONES.double()), THEIRS)
    assert not upstream._close(_turn(_tensor("float32", 4), 2 * ONES), THEIRS)


@pytest.mark.parametrize(
    "claim",
    [
        _tensor("float32", 1 << 40),
        _tensor("float32", 0, 1 << 61, 1 << 61),
        _tensor("nn", 4),  # in torch, but no dtype
        {"l": [_tensor("float32", 4)]},
        {"x": "coroutine"},
        {"v": 4},
    ],
)
def test_what_is_claimed_is_not_believed(claim: Any) -> None:
    assert not upstream._close(_turn(claim, ONES), THEIRS)


def test_what_was_not_delivered_is_not_read() -> None:
    assert not upstream._close(_turn(_tensor("float64", 4), ONES.double(), nbytes=16), THEIRS)
