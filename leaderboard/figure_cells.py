"""The figures of a run as cells of the model board: made when the figures are, and kept beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.marks import sparkline
from leaderboard.words import UNKNOWN, share, speed

_NOTHING = f'<span class="muted">{UNKNOWN}</span>'


def figure_cells(figures: Mapping[str, Any]) -> dict[str, str]:
    """The cells of a run's figures by column, as they are kept beside them; nothing that somebody wrote."""
    passed, fast, mean = figures["pass_at"], figures["fast_1_at"], figures["geometric_mean"]
    k, waiting = max(passed, key=int), figures["provisional"]
    best = share(passed[k]) + _small(f"k = {k}, fast {share(fast[k])}") if k != "1" else _NOTHING
    whole = _small(f"all {speed(mean['whole'])}")
    solved = _small(f"of {figures['track']}; {figures['faster']} faster")
    solved += _small(f"{waiting} provisional") if waiting else ""
    return {
        "fast_1": f'<td class="num"><strong>{share(fast["1"])}</strong>{_band(figures["fast_1_band"])}</td>',
        "curve": f"<td>{_spark(figures['fast_p'])}</td>",
        "pass_1": f'<td class="num">{share(passed["1"])}{_band(figures["pass_1_band"])}</td>',
        "pass_k": f'<td class="num nowrap">{best}</td>',
        "geometric_mean": f'<td class="num nowrap">{speed(mean["solved"])}{whole}</td>',
        "solved": f'<td class="num nowrap">{figures["solved"]}{solved}</td>',
        "roof_50": f'<td class="num">{share(figures["roof_u"]["value"][10])}</td>',
        "samples": f'<td class="num">{figures["n"]}</td>',
    }


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
