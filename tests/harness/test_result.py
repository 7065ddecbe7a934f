"""What a result says of itself, without ranks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.harness import result
from evaluator.harness.protocol import plan
from portal.pages.words import FLAGS
from problems.registry import load_target


def flags(target: str, protocol: str, steady: bool = True, below: bool = False) -> list[str]:
    facts: Any = SimpleNamespace(
        session=None, target=load_target(target), protocol=protocol, steady=steady, below_floor=below
    )
    return result._flags(cast(result.Facts, facts))


def test_a_target_that_is_not_timed_says_so() -> None:
    assert flags("h200x1", "check") == ["unranked_protocol", "untimed_target"]
    assert flags("cpu4", "paper") == []
    assert flags("h100x4", "paper", below=True) == ["below_floor"]
    assert flags("cpu4", "profile", steady=False) == ["noisy", "unranked_protocol"]


@pytest.mark.parametrize(
    "flag", ["untimed_target", "noisy", "unranked_protocol", "built_late", "below_resolution", "below_floor"]
)
def test_every_flag_has_words_on_the_page(flag: str) -> None:
    assert FLAGS[flag]


def test_a_profile_is_timed_as_quick_is() -> None:
    import random

    quick, profile = (plan(name, 0.01, random.Random(1)) for name in ("quick", "profile"))
    assert (profile.pairs, profile.block, profile.warmup) == (quick.pairs, quick.block, quick.warmup)
