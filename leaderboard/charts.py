"""Plotly figures from plain data: one look, no queries, no HTML.

Colours are not in here but names (``@ink``, ``@entrant3``): the page's script puts in the values of
the colour scheme in force, so the same figure is legible in light, dark and print.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from leaderboard.axes import log_ticks, time_range

PALETTE_SIZE = 8
_DASHES = ("solid", "dash", "dot", "dashdot")
_FEW = 4
LONGEST_NAME = 28


class Curved(Protocol):
    """A run with a label and figures."""

    @property
    def label(self) -> str: ...
    @property
    def entrant_id(self) -> int: ...
    @property
    def figures(self) -> Mapping[str, Any]: ...


class Dated(Curved, Protocol):
    """The same with its day."""

    @property
    def day(self) -> date: ...


def colour(entrant_id: int) -> str:
    """Name of an entrant's colour: the same on every page."""
    return f"@entrant{entrant_id % PALETTE_SIZE}"


def _style(index: int, rows: Sequence[Curved]) -> dict[str, Any]:
    """Colour by entrant; the dash tells apart those whose colours collide."""
    mine = colour(rows[index].entrant_id)
    before = sum(colour(row.entrant_id) == mine for row in rows[:index])
    return {"color": mine, "width": 2.5, "dash": _DASHES[before % len(_DASHES)]}


def _layout(x: dict[str, Any], y: dict[str, Any], **more: Any) -> dict[str, Any]:
    axis = {"gridcolor": "@grid", "linecolor": "@line", "zerolinecolor": "@line", "automargin": True}
    for side in (x, y):
        if "title" in side:
            side["title"]["standoff"] = 14  # px between the title and the labels, which grow with their text
    return {
        "font": {"color": "@ink", "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 16, "t": 16, "b": 48},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "@surface", "bordercolor": "@line", "font": {"color": "@ink"}},
        "legend": {"orientation": "h", "x": 0},
        "xaxis": axis | x,
        "yaxis": axis | y,
    } | more


def _share_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "range": [0, 1.02], "tickformat": ".0%"}


def fast_p(rows: Sequence[Curved], *, band: bool = False) -> dict[str, Any]:
    """Share of problems correct and faster than p, over p on a log axis from 0.1 to 10."""
    log = _log_axis(0.1, 10, "p: speedup")
    figure = _curves(rows, "fast_p", log, "share of problems, fast_p", "p = %{x:.2f}", band=band)
    figure["layout"]["shapes"] = [_at_one()]
    return figure


def _at_one() -> dict[str, Any]:
    """A line where a speedup is 1: as fast as the reference."""
    line = {"color": "@line", "dash": "dot", "width": 1.5}
    return {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _log_axis(low: float, high: float, title: str, suffix: str = "") -> dict[str, Any]:
    values, labels = log_ticks(low, high, suffix)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "title": {"text": title},
        "tickvals": values,
        "ticktext": labels,
    }


def roof_u(rows: Sequence[Curved], *, band: bool = False) -> dict[str, Any]:
    """Share of problems correct and at least at u of their roofline, over u."""
    axis = {
        "range": [0, 1],
        "tickformat": ".0%",
        "title": {"text": "u: share of the roofline"},
        "dtick": 0.25,
    }
    return _curves(rows, "roof_u", axis, "share of problems, roof_u", "u = %{x:.0%}", band=band)


def _curves(
    rows: Sequence[Curved], name: str, x: dict[str, Any], y_title: str, hover_x: str, *, band: bool
) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    for index, row in enumerate(rows):
        curve = row.figures[name]
        points = [i for i, at in enumerate(curve["at"]) if at > 0 or x.get("type") != "log"]
        at = [curve["at"][i] for i in points]
        style = _style(index, rows)
        if band:
            data += _band(
                at, [curve["low"][i] for i in points], [curve["high"][i] for i in points], style["color"]
            )
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": row.label,
                "x": at,
                "y": [curve["value"][i] for i in points],
                "customdata": [[curve["low"][i], curve["high"][i]] for i in points],
                "line": style | {"shape": "hv"},
                "hovertemplate": f"<b>{_plain(row.label)}</b><br>{hover_x}: %{{y:.1%}}"
                "<br>95 %: %{customdata[0]:.1%} to %{customdata[1]:.1%}<extra></extra>",
            }
        )
    layout = _layout(x, _share_axis(y_title), showlegend=len(rows) > 1)
    if 1 < len(rows) <= _FEW and name == "fast_p":
        layout["annotations"] = _direct_labels(rows, name)
    return {"data": data, "layout": layout}


def _direct_labels(rows: Sequence[Curved], name: str) -> list[dict[str, Any]]:
    """Write each line's name at its start, unless two would overlap."""
    starts = [(row.figures[name]["value"][1], index) for index, row in enumerate(rows)]
    labels = []
    last = 2.0
    for value, index in sorted(starts, reverse=True):
        if last - value < 0.05:
            continue
        last = value
        labels.append(
            {
                "x": -0.98,  # log10 of the left end
                "y": value,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "text": _plain(rows[index].label),
                "font": {"color": colour(rows[index].entrant_id), "size": 12},
            }
        )
    return labels


def _band(x: list[float], low: list[float], high: list[float], tint: str) -> list[dict[str, Any]]:
    edge = {
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0, "shape": "hv"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        edge | {"x": x, "y": low},
        edge | {"x": x, "y": high, "fill": "tonexty", "fillcolor": f"{tint}/0.15"},
    ]


CAPTIONS = {
    "fast_p": "fast_p: share of problems solved more than p times faster than the reference; the band is a 95 % "
    "bootstrap over problems.",
    "roof_u": "roof_u: share of problems solved at u of their roofline or better, with the same band.",
    "categories": "How its samples ended.",
    "climb": "Agent climb: share of problems solved, and solved faster than the reference, by the end of each step.",
    "heat": "Every problem and sample; the colour is how it ended, the speedup is in the hover and in the numbers.",
    "runs": "The model's runs over time: correct (pass@1) and faster (fast_1@1), with 95 % bands over problems.",
    "record": "How the best speedup of the problem rose over time.",
    "spread": "How the best speedups of the entrants are distributed. The dotted line is the reference.",
}
"""What stands below a chart, wherever it is shown."""

CATEGORY_WORDS = {
    "faster": "correct, faster",
    "slower": "correct, not faster",
    "incorrect": "wrong numbers",
    "contract": "broke the contract",
    "build": "did not build",
    "runtime": "crashed",
    "timeout": "hung",
    "memory": "out of memory",
    "rejected": "rejected",
    "missing": "not sent",
}


def categories(rows: Sequence[Curved]) -> dict[str, Any]:
    """Stacked bars: how the samples of each run ended, as shares."""
    labels = [_plain(row.label) for row in rows]
    data = []
    for name, words in CATEGORY_WORDS.items():
        counts = [row.figures["categories"].get(name, 0) for row in rows]
        if not any(counts):
            continue
        totals = [sum(row.figures["categories"].values()) or 1 for row in rows]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": words,
                "y": labels,
                "x": [count / total for count, total in zip(counts, totals, strict=True)],
                "customdata": counts,
                "marker": {"color": f"@cat_{name}", "line": {"color": "@surface", "width": 1}},
                "hovertemplate": f"%{{y}}<br>{words}: %{{customdata}} (%{{x:.1%}})<extra></extra>",
            }
        )
    layout = _layout(
        {"tickformat": ".0%", "range": [0, 1], "title": {"text": "share of samples"}},
        {"autorange": "reversed", "showticklabels": False},
        barmode="stack",
        bargap=0.56,
        height=max(190, 120 + 56 * len(rows)),
    )
    if len(rows) > 1:  # names stand above their bars: beside them they would take a phone's whole width
        layout["annotations"] = [
            {
                "name": "row",
                "x": 0,
                "y": label,
                "yshift": 24,
                "xanchor": "left",
                "showarrow": False,
                "text": label,
            }
            for label in labels
        ]
    return {"data": data, "layout": layout}


def climb(rows: Sequence[Curved]) -> dict[str, Any]:
    """Agent climb: solved and fast_1 by the end of each step."""
    data = []
    for index, row in enumerate(rows):
        for place, name, dash in ((1, "solved", "solid"), (2, "fast_1", "dot")):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": f"{row.label}: {name}" if len(rows) > 1 else name,
                    "x": [step[0] for step in row.figures["climb"]],
                    "y": [step[place] for step in row.figures["climb"]],
                    "line": {"color": _style(index, rows)["color"], "dash": dash, "width": 2},
                    "hovertemplate": f"step %{{x}}: %{{y:.1%}} {name}<extra></extra>",
                }
            )
    last = max((step[0] for row in rows for step in row.figures["climb"]), default=0)
    x = {"title": {"text": "step"}, "dtick": 1 if last <= 10 else 5, "range": [-0.2, last + 0.2]}
    return {"data": data, "layout": _layout(x, _share_axis("share of problems"))}


def runs(rows: Sequence[Dated]) -> dict[str, Any]:
    """A model's runs over time: pass@1 and fast_1@1 with their bands; runs come in any order."""
    ordered = sorted(rows, key=lambda row: row.day)
    data = []
    for key, name, tint in (("pass", "pass@1", "@entrant0"), ("fast", "fast_1@1", "@entrant1")):
        figures = [row.figures for row in ordered]
        values = [f[f"{'fast_1' if key == 'fast' else 'pass'}_at"]["1"] for f in figures]
        bands = [f[f"{key}_1_band"] for f in figures]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": [row.day.isoformat() for row in ordered],
                "y": values,
                "customdata": bands,
                "text": [_plain(row.label) for row in ordered],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [band[1] - value for band, value in zip(bands, values, strict=True)],
                    "arrayminus": [value - band[0] for band, value in zip(bands, values, strict=True)],
                    "thickness": 1,
                    "width": 4,
                },
                "line": {"color": tint, "width": 2},
                "hovertemplate": f"<b>%{{text}}</b><br>{name}: %{{y:.1%}}<br>%{{x|%d %b %Y}}<extra></extra>",
            }
        )
    return {"data": data, "layout": _layout({"type": "date"}, _share_axis("share of problems"), height=320)}


def heat_map(
    slugs: Sequence[str], samples: int, cells: dict[tuple[str, int], tuple[str, float | None]]
) -> dict[str, Any]:
    """Problem by sample: the category as colour, the speedup in the hover."""
    names = list(CATEGORY_WORDS)
    step = 1 / len(names)
    scale = []
    for index, name in enumerate(names):
        scale += [[index * step, f"@cat_{name}"], [(index + 1) * step, f"@cat_{name}"]]
    values, texts = [], []
    for slug in slugs:
        line = [cells.get((slug, sample), ("missing", None)) for sample in range(samples)]
        values.append([names.index(name) + 0.5 for name, _ in line])
        texts.append([CATEGORY_WORDS[name] + (f", {speed:.2f}×" if speed else "") for name, speed in line])
    return {
        "data": [
            {
                "type": "heatmap",
                "x": [f"sample {n}" for n in range(samples)],
                "y": list(slugs),
                "z": values,
                "text": texts,
                "zmin": 0,
                "zmax": len(names),
                "colorscale": scale,
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>",
            },
        ],
        "layout": _layout(
            {"side": "top"}, {"autorange": "reversed", **_short_names(slugs)}, height=80 + 17 * len(slugs)
        ),
    }


def _short_names(slugs: Sequence[str]) -> dict[str, Any]:
    """An axis of problems whose names leave room for the cells on a phone; the hover has them whole."""
    short = [slug if len(slug) <= LONGEST_NAME else f"{slug[: LONGEST_NAME - 1]}…" for slug in slugs]
    return {"tickfont": {"size": 11}, "tickvals": list(slugs), "ticktext": short}


def _plain(text: str) -> str:
    """Plotly reads a little HTML in labels: keep names literal."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Recorded(Protocol):
    """A moment at which a record rose."""

    @property
    def at(self) -> datetime: ...
    @property
    def speedup(self) -> float: ...
    @property
    def entrant(self) -> str: ...


def record_history(history: Sequence[Recorded]) -> dict[str, Any]:
    """The best speedup over time as a staircase; needs its records oldest first."""
    data = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "record",
        "showlegend": False,
        "x": [record.at.isoformat() for record in history],
        "y": [record.speedup for record in history],
        "text": [_plain(record.entrant) for record in history],
        "line": {"color": "@accent", "shape": "hv", "width": 2.5},
        "marker": {"size": 8},
        "hovertemplate": "<b>%{y:.3g}×</b> by %{text}<br>%{x|%d %b %Y, %H:%M}<extra></extra>",
    }
    y = {"title": {"text": "best speedup"}, "rangemode": "tozero", "ticksuffix": "×"}
    x = {"type": "date", "range": time_range([record.at for record in history])}
    return {"data": [data], "layout": _layout(x, y, height=280)}


def spread(speedups: Sequence[float]) -> dict[str, Any]:
    """How the entrants' best speedups are distributed, on a log axis in steps of a fifth of an octave."""
    step = math.log10(2) / 5
    places = Counter(math.floor(math.log10(value) / step) for value in speedups)
    low, high = min(places), max(places)
    bins = range(low, high + 1)
    edges = [(10 ** (n * step), 10 ** ((n + 1) * step)) for n in bins]
    data = {
        "type": "bar",
        "name": "entrants",
        "showlegend": False,
        "x": [math.sqrt(a * b) for a, b in edges],
        "y": [places.get(n, 0) for n in bins],
        "width": [b - a for a, b in edges],
        "customdata": [[a, b] for a, b in edges],
        "marker": {"color": "@accent", "line": {"color": "@surface", "width": 1}},
        "hovertemplate": "%{y} entrants from %{customdata[0]:.2f}× to %{customdata[1]:.2f}×<extra></extra>",
    }
    x = _log_axis(min(edges[0][0], 1) / 1.05, max(edges[-1][1], 1) * 1.05, "speedup", "×")
    tallest = max(places.values())
    y = {"title": {"text": "entrants"}, "rangemode": "tozero"} | ({"dtick": 1} if tallest <= 6 else {})
    return {"data": [data], "layout": _layout(x, y, height=280, bargap=0, shapes=[_at_one()])}
