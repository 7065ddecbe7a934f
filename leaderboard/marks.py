"""Geometry of the small inline drawings on boards: plain numbers in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

WIDTH = 160.0
_MARGIN = 6.0


class HasInterval(Protocol):
    """Anything with a speedup and its 95 % limits."""

    @property
    def speedup(self) -> float: ...
    @property
    def speedup_low(self) -> float: ...
    @property
    def speedup_high(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an interval is drawn on an axis shared by all rows; ``one`` is the reference's place."""

    low: float
    x: float
    high: float
    one: float


def interval_marks(rows: Sequence[HasInterval]) -> list[Mark]:
    """Place intervals on one logarithmic axis that always holds 1.0."""
    if not rows:
        return []
    low = min(1.0, *(row.speedup_low for row in rows))
    high = max(1.0, *(row.speedup_high for row in rows))
    if high / low < 1.5:  # a board of near ties must not look like a spread
        low, high = low / 1.25, high * 1.25
    span = math.log(high / low)

    def at(value: float) -> float:
        return round(_MARGIN + (WIDTH - 2 * _MARGIN) * math.log(value / low) / span, 2)

    return [Mark(at(r.speedup_low), at(r.speedup), at(r.speedup_high), at(1.0)) for r in rows]


def sparkline(values: Sequence[float], *, width: float = 120, height: float = 28) -> str:
    """Points of a polyline for values between 0 and 1, left to right."""
    if len(values) < 2:
        return ""
    step = (width - 2) / (len(values) - 1)
    return " ".join(
        f"{1 + index * step:.1f},{1 + (height - 2) * (1 - min(1.0, max(0.0, value))):.1f}"
        for index, value in enumerate(values)
    )
