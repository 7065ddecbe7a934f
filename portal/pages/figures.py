"""Coordinates of the small drawings on the submission page. Plain numbers; the templates draw SVG."""

import math
from dataclasses import dataclass
from typing import Any

from leaderboard.axes import log_ticks
from portal.core.units import duration

LEFT = 14
RIGHT = 406
LONGEST_BAR = 250


@dataclass(frozen=True)
class Interval:
    """The speedup with its interval on a logarithmic axis; all values are x coordinates but the texts."""

    low: float
    value: float
    high: float
    one: float
    ticks: list[tuple[float, str]]
    text: str


@dataclass(frozen=True)
class Bar:
    """One bar of a time comparison."""

    label: str
    width: float
    y: int
    text: str
    own: bool


def interval(timing: dict[str, Any]) -> Interval | None:
    """Return the drawing of a speedup, None when the timing has none."""
    value = _number(timing.get("speedup"))
    if not value:
        return None
    low = _number(timing.get("speedup_low")) or value
    high = _number(timing.get("speedup_high")) or value
    start, end = _span(min(low, 1.0) / 1.15, max(high, 1.0) * 1.15)

    def x(number: float) -> float:
        share = (math.log(number) - math.log(start)) / (math.log(end) - math.log(start))
        return round(LEFT + share * (RIGHT - LEFT), 1)

    ticks = [(x(t), label) for t, label in zip(*log_ticks(start, end, "×", RIGHT - LEFT), strict=True)]
    text = f"{value:.2f} times as fast as the reference, 95 % interval {low:.2f} to {high:.2f}"
    return Interval(x(low), x(value), x(high), x(1.0), ticks, text)


def bars(timing: dict[str, Any], roofline: dict[str, Any] | None) -> list[Bar]:
    """Return bars for the solution, the reference and the roofline, the longest over the full width."""
    rows = [
        ("this file", timing.get("solution_ms"), True),
        ("reference", timing.get("reference_ms"), False),
        ("roofline", (roofline or {}).get("t_roof_ms"), False),
    ]
    known = [(label, _number(ms), own) for label, ms, own in rows if _number(ms)]
    longest = max((ms for _, ms, _ in known), default=1.0)
    return [
        Bar(label, round(max(2.0, LONGEST_BAR * ms / longest), 1), 14 + 30 * i, duration(ms / 1e3), own)
        for i, (label, ms, own) in enumerate(known)
    ]


def _number(value: Any) -> float:
    """Return a positive finite number as it is, anything else as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(value) if value > 0 else 0.0


def _span(start: float, end: float) -> tuple[float, float]:
    """Return an axis of at least a factor of 1.5, so that a tiny interval does not fill the page."""
    if end / start < 1.5:
        middle = math.sqrt(start * end)
        return middle / math.sqrt(1.5), middle * math.sqrt(1.5)
    return start, end
