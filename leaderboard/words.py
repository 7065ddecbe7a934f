"""Figures of boards as text; "–" stands for what is not known."""

from __future__ import annotations

from datetime import date
from typing import Any

from portal.core.units import duration

UNKNOWN = "–"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def speed(factor: Any) -> str:
    """A speedup with three significant figures."""
    if not isinstance(factor, int | float):
        return UNKNOWN
    return f"{factor:.0f}×" if factor >= 100 else f"{factor:.3g}×" if factor >= 10 else f"{factor:.2f}×"


def share(value: Any) -> str:
    """A share of one as per cent with one decimal."""
    if not isinstance(value, int | float):
        return UNKNOWN
    return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


def size_of(count: Any) -> str:
    """A number of bytes with a fitting unit."""
    if not isinstance(count, int | float) or count < 0:
        return UNKNOWN
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if value >= 100 or unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def milliseconds(ms: Any) -> str:
    """Milliseconds with a fitting unit."""
    return duration(ms / 1e3) if isinstance(ms, int | float) and ms > 0 else UNKNOWN


def mechanism(entry: Any) -> str:
    """A mechanism, with its share of the device time where known; a "?" where it is only possible."""
    if not isinstance(entry, dict):
        return str(entry)
    doubt = "" if entry.get("certain", True) else "?"
    known = entry.get("share")
    return f"{entry.get('name', '')}{doubt}" + (f" {known:.0%}" if isinstance(known, float) else "")


def day(at: date) -> str:
    """A day, or that of a moment."""
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"
