"""What a result says of itself, without ranks."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.harness import cli, result
from evaluator.harness.protocol import plan
from portal.pages.words import FLAGS
from problems.registry import load_target


def flags(target: str, protocol: str, unsteady: Sequence[str] = (), below: bool = False) -> list[str]:
    facts: Any = SimpleNamespace(
        session=None, target=load_target(target), protocol=protocol, unsteady=unsteady, below_floor=below
    )
    return result._flags(cast(result.Facts, facts))


def test_a_target_that_is_not_timed_says_so() -> None:
    assert flags("h200x1", "check") == ["unranked_protocol", "untimed_target"]
    assert flags("cpu4", "paper") == []
    assert flags("h100x4", "paper", below=True) == ["below_floor"]
    assert flags("cpu4", "profile", unsteady=["drift"]) == ["noisy", "unranked_protocol"]


@pytest.mark.parametrize(
    "flag", ["untimed_target", "noisy", "unranked_protocol", "built_late", "below_resolution", "below_floor"]
)
def test_every_flag_has_words_on_the_page(flag: str) -> None:
    assert FLAGS[flag]


def test_a_profile_is_timed_as_quick_is() -> None:
    import random

    quick, profile = (plan(name, 0.01, random.Random(1)) for name in ("quick", "profile"))
    assert (profile.pairs, profile.block, profile.warmup) == (quick.pairs, quick.block, quick.warmup)


def test_the_command_line_names_whose_time_is_whose(capsys: pytest.CaptureFixture[str]) -> None:
    """The medians' quotient may lie on the other side of 1 than the median of quotients."""
    timing = dict(
        speedup=1.068, speedup_low=0.9, speedup_high=1.2, solution_ms=9.558, reference_ms=9.287, calls=12
    )
    found = dict.fromkeys(
        ("target", "size", "protocol", "verdict", "code", "isolation_grade", "message"), "x"
    )

    cli._print_result({**found, "problem": {"slug": "p"}, "timing": timing, "findings": [], "stacks": []})

    told = "yours 9.558 ms, reference 9.287 ms (medians; the speedup is the median of paired ratios)"
    assert told in capsys.readouterr().out
