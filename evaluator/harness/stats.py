"""Speedup from paired blocks, with an interval that holds on a noisy machine.

Reference and solution take turns in pairs of blocks. The speedup is the median of the pairs' log
ratios; its interval comes from order statistics (binomial, no distribution assumed).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Speedup:
    """reference time / solution time, with the interval's ends and its true coverage."""

    value: float
    low: float
    high: float
    coverage: float


def order_interval(count: int, level: float = 0.95) -> tuple[int, float]:
    """(k, coverage): the k-th smallest and k-th largest of `count` values enclose the median.

    The largest k (1-based) whose coverage 1 - 2·P(Binomial(count, 1/2) < k) is at least `level`;
    with too few values k = 1 and the coverage says how little that is worth.
    """
    tail = 0.0
    best = (1, 1.0 - 2.0 * 0.5**count if count else 0.0)
    for k in range(1, count // 2 + 1):
        tail += math.comb(count, k - 1) * 0.5**count
        if 1.0 - 2.0 * tail < level:
            break
        best = (k, 1.0 - 2.0 * tail)
    return best


def speedup(pairs: Sequence[tuple[float, float]]) -> Speedup:
    """From (reference seconds, solution seconds) per pair of blocks. Raises ValueError when empty."""
    if not pairs:
        raise ValueError("no pair was measured")
    ratios = sorted(math.log(reference / solution) for reference, solution in pairs)
    k, coverage = order_interval(len(ratios))
    return Speedup(
        value=math.exp(median(ratios)),
        low=math.exp(ratios[k - 1]),
        high=math.exp(ratios[-k]),
        coverage=coverage,
    )
