"""Source code as HTML that is safe to show: classes not styles, and nothing invisible stays invisible."""

import html
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pygments import format as formatted
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

MAX_HIGHLIGHTED = 200_000
MAX_SECONDS = 1.5
"""Of processor time. Pygments looks for the end of what is open anew at each line or opening: 190 kB of empty lines
in a CUDA file would keep a page for minutes, at every visit."""

# Characters that change how text looks without being seen: bidi controls, zero-width, other formats.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Code:
    """Lines of highlighted HTML; `hidden` counts the characters that were made visible."""

    lines: list[str]
    hidden: int


def render(text: str, language: str = "python") -> Code:
    """Return one HTML string a line. Sources that are very long, or take long, are escaped only, not coloured."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body = _coloured(text, language) if len(text) <= MAX_HIGHLIGHTED else html.escape(text)
    body, hidden = _HIDDEN.subn(_token, body)
    body, control = _CONTROL.subn(_token, body)
    return Code(body.rstrip("\n").split("\n"), hidden + control)


def _coloured(text: str, language: str) -> str:
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=True)
    try:
        return str(formatted(_in_time(lexer.get_tokens(text)), HtmlFormatter(nowrap=True)))
    except TimeoutError:
        return html.escape(text)


def _in_time(tokens: Iterable[Any]) -> Iterator[Any]:
    """The same tokens; TimeoutError when making them takes too long."""
    until = time.thread_time() + MAX_SECONDS
    for token in tokens:
        if time.thread_time() > until:
            raise TimeoutError
        yield token


def language_of(name: str) -> str:
    """Return the lexer for a file name."""
    return "cuda" if name.rpartition(".")[2] in ("cu", "cuh", "h") else "python"


def _token(match: re.Match[str]) -> str:
    point = f"U+{ord(match.group()):04X}"
    return f'<span class="hidden-char" title="invisible character {point}">{point}</span>'
