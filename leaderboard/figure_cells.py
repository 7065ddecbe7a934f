"""The figures of a run as cells of the model board: made when the figures are, and kept beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.marks import sparkline
from leaderboard.words import UNKNOWN, share, speed

_NOTHING = f'<span class="muted">{UNKNOWN}</span>'


COLUMNS = ("fast_1", "curve", "pass_1", "pass_k", "geometric_mean", "solved", "roof_50", "samples")
"""Columns whose cells are kept, in their order there."""


def kept(figures: Mapping[str, Any]) -> str:
    """The figures as they are kept: the number of problems, then a cell a line; nothing that somebody wrote."""
    return "\n".join((str(figures["track"]), *_cells(figures)))


def by_column(text: str) -> dict[str, str]:
    """The cells of what is kept."""
    return dict(zip(COLUMNS, text.split("\n")[1:], strict=True))


def track_of(text: str) -> int:
    """How many problems the figures that are kept were taken over."""
    return int(text.partition("\n")[0])


def _cells(figures: Mapping[str, Any]) -> tuple[str, ...]:
    passed, fast, mean = figures["pass_at"], figures["fast_1_at"], figures["geometric_mean"]
    k, waiting = max(passed, key=int), figures["provisional"]
    best = share(passed[k]) + _small(f"k = {k}; faster {share(fast[k])}") if k != "1" else _NOTHING
    whole = _small(f"whole track {speed(mean['whole'])}")
    solved = _small(f"of {figures['track']}; {figures['faster']} faster")
    solved += _small(f"{figures['sent']} sent")
    solved += _small(f"{waiting} provisional") if waiting else ""
    return (
        f'<td class="num"><strong>{share(fast["1"])}</strong>{_band(figures["fast_1_band"])}</td>',
        f"<td>{_spark(figures['fast_p'])}</td>",
        f'<td class="num">{share(passed["1"])}{_band(figures["pass_1_band"])}</td>',
        f'<td class="num nowrap">{best}</td>',
        f'<td class="num nowrap">{speed(mean["solved"])}{whole}</td>',
        f'<td class="num nowrap">{figures["solved"]}{solved}</td>',
        f'<td class="num">{share(figures["roof_u"]["value"][10])}</td>',
        f'<td class="num">{figures["n"]}</td>',
    )


def _small(text: str) -> str:
    return f'<span class="band">{text}</span>'


def _band(limits: Sequence[float]) -> str:
    return _small(f"{share(limits[0])} – {share(limits[1])}")


def _spark(curve: Mapping[str, Sequence[float]]) -> str:
    """The fast_p curve for p from 0.1 to 10 on the log axis of the chart, and its ends and middle in words."""
    at, values = curve["at"][1:], curve["value"][1:]
    told = ", ".join(f"{share(values[at.index(p)])} at p = {p:g}" for p in (at[0], 1.0, at[-1]))
    return (
        f'<svg class="spark" viewBox="0 0 120 28" role="img" aria-label="fast_p: {told}">'
        f'<line x1="60" x2="60" y1="0" y2="28" /><polyline points="{sparkline(values)}" /></svg>'
    )
