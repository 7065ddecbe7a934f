"""95 % bands of shares and of means over problems: pure functions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy

Z_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Band:
    """A point estimate with its 95 % limits, all in the unit of the metric."""

    value: float
    low: float
    high: float


def wilson(successes: float, n: int, z: float = Z_95) -> Band:
    """Wilson score interval of a proportion; (0, 0, 1) when nothing was tried."""
    if n < 0 or not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n={n}, got {successes}")
    if n == 0:
        return Band(0.0, 0.0, 1.0)
    share = successes / n
    scale = 1.0 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    # At 0 and n the limits equal the share in exact arithmetic; rounding must not cross it.
    low = 0.0 if successes == 0 else max(0.0, min(share, centre - half))
    high = 1.0 if successes == n else min(1.0, max(share, centre + half))
    return Band(share, low, high)


def bootstrap(
    values: Sequence[float], *, resamples: int = 1000, level: float = 0.95, seed: int = 20260601
) -> Band:
    """Percentile bootstrap of the mean over problems; same values and seed, same band.

    Problems are the unit that is resampled: samples of one problem hang together.
    """
    if not values:
        return Band(0.0, 0.0, 1.0)
    if resamples < 2 or not 0 < level < 1:
        raise ValueError("a bootstrap needs at least two resamples and a level between 0 and 1")
    count = len(values)
    mean = math.fsum(values) / count
    drawn = numpy.asarray(values, dtype=float)[_resamples(count, resamples, seed)]
    means = numpy.sort(drawn.sum(axis=1) / count).tolist()
    tail = (1 - level) / 2
    low = means[math.floor(tail * (resamples - 1))]
    high = means[math.ceil((1 - tail) * (resamples - 1))]
    return Band(mean, min(low, mean), max(high, mean))


@lru_cache(maxsize=8)
def _resamples(
    count: int, resamples: int, seed: int
) -> numpy.ndarray[tuple[int, int], numpy.dtype[numpy.intp]]:
    """Which problems each resample draws: the same whatever the values, so it is drawn once per size."""
    draw = random.Random(seed)  # noqa: S311 - statistics, not secrets
    return numpy.array([draw.choices(range(count), k=count) for _ in range(resamples)], dtype=numpy.intp)
