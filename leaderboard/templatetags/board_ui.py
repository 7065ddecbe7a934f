"""What board templates show beyond the shared components."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html

from leaderboard import charts
from leaderboard.charts import PALETTE_SIZE
from leaderboard.marks import WIDTH, Mark, sparkline
from leaderboard.twins import twin

register = template.Library()

_GRADES = {
    "full": ("good", "Sandbox, freezer and limits were all in force."),
    "partial": ("warn", "Sandboxed, but without the freezer or the resource limits."),
    "none": ("bad", "Not isolated: only samples that ship with the portal may run so."),
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@register.simple_tag
@lru_cache(maxsize=16)
def grade(value: str) -> str:
    """Show an isolation grade as a word with its meaning; there are few, and every row shows one."""
    tone, title = _GRADES.get(value, ("info", ""))
    return render_to_string("leaderboard/_grade.html", {"tone": tone, "title": title, "word": value})


@register.filter
def size_of(count: Any) -> str:
    """Show a number of bytes with a fitting unit."""
    if not isinstance(count, int | float) or count < 0:
        return "–"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if value >= 100 or unit == 0 else f"{value:.1f} {_UNITS[unit]}"


@register.filter
def speed(factor: Any) -> str:
    """Show a speedup with three significant figures."""
    if not isinstance(factor, int | float):
        return "–"
    return f"{factor:.0f}×" if factor >= 100 else f"{factor:.3g}×" if factor >= 10 else f"{factor:.2f}×"


@register.filter
def mechanism_words(entry: Any) -> str:
    """Name a mechanism, with its share of the device time where known; a "?" where it is only possible."""
    if not isinstance(entry, dict):
        return str(entry)
    doubt = "" if entry.get("certain", True) else "?"
    known = entry.get("share")
    return f"{entry.get('name', '')}{doubt}" + (f" {known:.0%}" if isinstance(known, float) else "")


@register.filter
def share(value: Any) -> str:
    """Show a share of one as per cent with one decimal."""
    if not isinstance(value, int | float):
        return "–"
    return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


@register.simple_tag
def band(limits: Sequence[float]) -> str:
    """The two limits of a 95 % band of a share."""
    return f"{share(limits[0])} – {share(limits[1])}"


@register.simple_tag
def day(at: datetime) -> str:
    """A moment as its day, with the minute in the title. One tag, since every row of a board has one."""
    short = f"{at.day} {at:%b %Y}"
    return format_html(
        '<time datetime="{}" title="{}, {} UTC">{}</time>', at.isoformat(), short, f"{at:%H:%M}", short
    )


@register.simple_tag
def interval(row: Any, mark: Mark) -> str:
    """The bar of a speedup's 95 % interval on the axis that all rows share, with the reference's line."""
    return format_html(
        '<svg class="chart" viewBox="0 0 {} 16" width="160" height="16" role="img" aria-label="{} to {}">'
        '<line class="one" x1="{}" x2="{}" y1="0" y2="16" /><line class="range" x1="{}" x2="{}" y1="8" y2="8" />'
        '<circle class="dot" cx="{}" cy="8" r="3.5" /></svg>',
        *(WIDTH, speed(row.speedup_low), speed(row.speedup_high)),
        *(mark.one, mark.one, mark.low, mark.high, mark.x),
    )


@register.filter
def swatch(entrant_id: int) -> str:
    """CSS class of an entrant's colour, the one that charts use."""
    return f"swatch swatch--{entrant_id % PALETTE_SIZE}"


@register.simple_tag
def category_key() -> list[tuple[str, str]]:
    """(name, words) of the colours in which charts show how samples ended."""
    return list(charts.CATEGORY_WORDS.items())


@register.simple_tag
def spark(figures: dict[str, Any]) -> str:
    """Points of the fast_p sparkline: p from 0.1 to 10, on the log axis of the chart."""
    return sparkline(figures["fast_p"]["value"][1:])


@register.inclusion_tag("leaderboard/_chart.html")
def chart(figure: dict[str, Any], name: str, caption: str, csv: str = "", embed: str = "") -> dict[str, Any]:
    """Show a Plotly figure with its caption, its numbers as a table, and links to CSV and to itself alone."""
    return {
        "figure": figure,
        "twin": twin(figure),
        "id": f"chart-{name}",
        "name": name,
        "caption": caption,
        "csv": csv or (f"{embed}{'&' if '?' in embed else '?'}as=csv" if embed else ""),
        "embed": embed,
    }


@register.simple_tag
def record_figure(history: Sequence[Any]) -> dict[str, Any]:
    """The record over time, of records that are listed newest first."""
    return charts.record_history(list(history)[::-1])


@register.simple_tag
def spread_figure(speedups: Sequence[float]) -> dict[str, Any]:
    """The distribution of the speedups of a board."""
    return charts.spread(list(speedups))
