"""What board templates show beyond the shared components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from leaderboard import chart_html, charts, lines, words
from leaderboard.columns import Column
from leaderboard.model_page import ProblemOutcome
from leaderboard.model_rows import ModelRow
from leaderboard.selectors import BoardRow, ProblemSummary
from leaderboard.twins import twin

register = template.Library()

register.filter("size_of", words.size_of)
register.filter("speed", words.speed)
register.filter("share", words.share)
register.filter("mechanism_words", words.mechanism)
register.filter("swatch", lines.swatch)


@register.simple_tag
def grade(value: str) -> SafeString:
    """Show an isolation grade as a word with its meaning."""
    return mark_safe(lines.grade(value))  # noqa: S308 (it escapes)


@register.simple_tag
def model_lines(rows: Sequence[ModelRow], columns: Sequence[Column], target: str, size: str) -> SafeString:
    """The rows of the model board."""
    return lines.model_lines(rows, columns, target, size)


@register.simple_tag
def problem_lines(rows: Sequence[BoardRow], backend: str) -> SafeString:
    """The rows of a problem board."""
    return lines.problem_lines(rows, backend)


@register.simple_tag
def waiting_lines(rows: Sequence[BoardRow], backend: str) -> SafeString:
    """The rows of a problem board that wait for their second measurement."""
    return lines.waiting_lines(rows, backend)


@register.simple_tag
def index_lines(found: Sequence[ProblemSummary], target: str, query: str) -> SafeString:
    """The boards of a target with their leaders."""
    return lines.index_lines(found, target, query)


@register.simple_tag
def outcome_lines(found: Sequence[ProblemOutcome], target: str, size: str) -> SafeString:
    """A run problem by problem."""
    return lines.outcome_lines(found, target, size)


@register.simple_tag
def category_key() -> list[tuple[str, str]]:
    """(name, words) of the colours in which charts show how samples ended."""
    return list(charts.CATEGORY_WORDS.items())


@register.inclusion_tag("leaderboard/_chart.html")
def chart(figure: dict[str, Any], name: str, caption: str, csv: str = "", embed: str = "") -> dict[str, Any]:
    """Show a Plotly figure with its caption, its numbers as a table, and links to CSV and to itself alone."""
    numbers = twin(figure)
    return {
        "data": chart_html.data(figure, f"chart-{name}"),
        "table": chart_html.table(numbers) if numbers.head else "",
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
