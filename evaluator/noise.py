"""The noise floor of a problem on a host: how far the reference is from itself there. Pure figures.

Pooled from stored comparisons of the reference with itself: the blocks before and after each full
protocol, and the runs whose submission was the reference. 10 % until 20 of them exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DEFAULT = 0.10
NEEDED = 20
POOL = 200
"""The newest comparisons that count: a host changes with its kernel, its neighbours, its age."""

QUANTILE = 0.95
LEAST, MOST = 0.005, 0.50
"""Below the first nothing here can be told apart; beyond the second every result would be a tie."""


def floor_of(log_ratios: Sequence[float]) -> float:
    """The relative floor: the 95 % quantile of the ratios' distance from 1, between LEAST and MOST."""
    if len(log_ratios) < NEEDED:
        return DEFAULT
    away = sorted(math.expm1(abs(ratio)) for ratio in log_ratios)
    at = math.ceil(QUANTILE * len(away)) - 1
    return min(MOST, max(LEAST, away[at]))


def block_ratio(timing: Any) -> float | None:
    """log(after / before) of one cell's timing; None where they were not measured."""
    if not isinstance(timing, dict):
        return None
    return _log_ratio(timing.get("after_ms"), timing.get("before_ms"))


def speedup_ratio(timing: Any) -> float | None:
    """log of the speedup of a run whose submission was the reference; None where there is none."""
    if not isinstance(timing, dict):
        return None
    return _log_ratio(timing.get("speedup"), 1.0)


def _log_ratio(upper: Any, lower: Any) -> float | None:
    for value in (upper, lower):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not math.isfinite(value) or value <= 0:
            return None
    return math.log(upper / lower)
