"""Source code as HTML that is safe to show: classes not styles, and nothing invisible stays invisible."""

import html
import re
from dataclasses import dataclass

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

MAX_HIGHLIGHTED = 200_000

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
    """Return one HTML string a line. Very long sources are escaped only, not coloured."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_HIGHLIGHTED:
        body = html.escape(text)
    else:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=True)
        body = highlight(text, lexer, HtmlFormatter(nowrap=True))
    body, hidden = _HIDDEN.subn(_token, body)
    body, control = _CONTROL.subn(_token, body)
    return Code(body.rstrip("\n").split("\n"), hidden + control)


def language_of(name: str) -> str:
    """Return the lexer for a file name."""
    return "cuda" if name.rpartition(".")[2] in ("cu", "cuh", "h") else "python"


def _token(match: re.Match[str]) -> str:
    point = f"U+{ord(match.group()):04X}"
    return f'<span class="hidden-char" title="invisible character {point}">{point}</span>'
