"""Ranges and labels of axes: on a logarithmic one as many labels as fit, never so many that they touch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

NARROWEST_PX = 220.0
"""Width of the plot area on the narrowest screen that we draw for (360 px)."""

CHARACTER_PX = 7.6
"""Width of a digit at the size of axis labels."""

GAP_PX = 8.0
"""Least white between two labels."""

_FINE = tuple(1 + 0.1 * n for n in range(90))
_LEVELS = (_FINE, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


def time_range(moments: Sequence[datetime]) -> list[str]:
    """From when to when an axis of these moments goes: a day around a single one, else an hour at least.

    Left to itself the chart would spread what lies so close over milliseconds.
    """
    first, last = min(moments), max(moments)
    span = last - first
    least = timedelta(hours=1) if span else timedelta(days=1)
    margin = max(span / 20, (least - span) / 2)
    return [(first - margin).isoformat(), (last + margin).isoformat()]


def log_ticks(
    low: float, high: float, suffix: str = "", width: float = NARROWEST_PX
) -> tuple[list[float], list[str]]:
    """Values and their labels on a log axis from ``low`` to ``high`` (both above zero).

    The densest of a few plain sequences whose labels keep a gap on an axis ``width`` pixels wide. Raises
    ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError("a log axis needs 0 < low < high")
    for values in _candidates(low, high):
        labels = [f"{value:.3g}{suffix}" for value in values]
        if len(values) > 1 and _fit(values, labels, width / math.log(high / low)):
            return values, labels
    middle = 1.0 if low <= 1 <= high else math.sqrt(low * high)
    return [middle], [f"{middle:.2g}{suffix}"]


def _candidates(low: float, high: float) -> Iterator[list[float]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in _LEVELS:
        yield _inside([m * 10.0**e for e in range(first, last + 1) for m in mantissas], low, high)
    for step in range(2, last - first + 1):
        yield _inside([10.0**e for e in range(first - first % step, last + 1, step)], low, high)


def _inside(values: Sequence[float], low: float, high: float) -> list[float]:
    return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def _fit(values: Sequence[float], labels: Sequence[str], px_per_e: float) -> bool:
    places = [px_per_e * math.log(value / values[0]) for value in values]
    return all(
        places[i] - places[i - 1] >= CHARACTER_PX * (len(labels[i]) + len(labels[i - 1])) / 2 + GAP_PX
        for i in range(1, len(values))
    )
