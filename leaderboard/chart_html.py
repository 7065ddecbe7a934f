"""The parts of a chart's HTML that hold its numbers: the table twin and the figure as JSON."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from leaderboard.twins import Twin

_IN_SCRIPT = (("<", "\\u003C"), (">", "\\u003E"), ("&", "\\u0026"))
_NEXT = "\x1f"
"""Parts the cells of a line while all of it is escaped at once."""


def table(numbers: Twin) -> SafeString:
    """The twin as the head and body of a table; the first column names the line."""
    first, *others = numbers.head
    head = f"<th>{escape(first)}</th>" + "".join(f'<th class="num">{escape(name)}</th>' for name in others)
    lines = "".join(map(_line, numbers.shown))
    return mark_safe(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>")  # noqa: S308


def _line(values: list[str]) -> str:
    first, *others = values
    cells = escape(_NEXT.join(others)).replace(_NEXT, '</td><td class="num nowrap">')
    rest = f'<td class="num nowrap">{cells}</td>' if others else ""
    return f'<tr><th scope="row" class="nowrap">{escape(first)}</th>{rest}</tr>'


def data(figure: dict[str, Any], name: str) -> SafeString:
    """A figure as a script element of JSON, which no text in it can leave."""
    text = json.dumps(figure, separators=(",", ":"))
    for sign, code in _IN_SCRIPT:
        text = text.replace(sign, code)
    return mark_safe(f'<script id="{escape(name)}" type="application/json">{text}</script>')  # noqa: S308
