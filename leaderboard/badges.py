"""A small picture of a model's standing, for READMEs elsewhere."""

from __future__ import annotations

from html import escape

_CHAR = 6.6
_PAD = 10


def badge_svg(label: str, value: str) -> str:
    """An SVG badge of two fields; text is escaped, widths are estimated from the number of letters."""
    left = round(len(label) * _CHAR + 2 * _PAD)
    right = round(len(value) * _CHAR + 2 * _PAD)
    title = escape(f"{label}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="22" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<rect width="{left + right}" height="22" rx="5" fill="#2c3a36"/>'
        f'<path d="M{left} 0h{right - 5}a5 5 0 0 1 5 5v12a5 5 0 0 1-5 5H{left}z" fill="#0f6b63"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="15">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="15">{escape(value)}</text></g></svg>'
    )
