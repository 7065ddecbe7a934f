"""The table twin of a chart: the numbers that a figure draws, read from the figure itself."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Twin:
    """Column names, raw values for CSV, and the same as text for a page."""

    head: list[str]
    rows: list[list[Any]]
    shown: list[list[str]]


def twin(figure: dict[str, Any]) -> Twin:
    """The numbers of a Plotly figure made by charts.py; an empty table when it draws nothing."""
    traces = [trace for trace in figure["data"] if trace.get("hoverinfo") != "skip"]
    if not traces:
        return Twin([], [], [])
    if traces[0]["type"] == "heatmap":
        return _grid(traces[0])
    layout = figure["layout"]
    if traces[0].get("orientation") == "h":
        counted = all("customdata" in trace for trace in traces)
        return _bars(traces) if counted else Twin([], [], [])  # a timeline brings a table of its own
    percent = {axis: "%" in layout[axis].get("tickformat", "") for axis in ("xaxis", "yaxis")}
    head = [_title(layout["xaxis"], "when")]
    columns: list[list[Any]] = []
    if "text" in traces[0]:
        head.append("who")
        columns.append([_text(name) for name in traces[0]["text"]])
    for trace in traces:  # all traces of a figure share their places
        head.append(_text(trace["name"]))
        columns.append(list(trace["y"]))
        limits = trace.get("customdata")
        if limits and trace["type"] == "scatter":
            for place, name in ((0, "low"), (1, "high")):
                head.append(f"{_text(trace['name'])}, 95 % {name}")
                columns.append([pair[place] for pair in limits])
    rows = [list(values) for values in zip(traces[0]["x"], *columns, strict=True)]
    shown = [
        [_show(row[0], percent["xaxis"]), *(_show(value, percent["yaxis"]) for value in row[1:])]
        for row in rows
    ]
    return Twin(head, rows, shown)


def _bars(traces: Sequence[dict[str, Any]]) -> Twin:
    """Stacked bars: a line per bar, counts as columns."""
    labels = list(traces[0]["y"])
    rows = [
        [label, *(trace["customdata"][at] for trace in traces)] for at, label in enumerate(map(_text, labels))
    ]
    head = ["run", *(_text(trace["name"]) for trace in traces)]
    return Twin(head, rows, [[str(value) for value in row] for row in rows])


def _grid(trace: dict[str, Any]) -> Twin:
    rows = [[name, *texts] for name, texts in zip(trace["y"], trace["text"], strict=True)]
    return Twin(["problem", *trace["x"]], rows, rows)


def _title(axis: dict[str, Any], fallback: str) -> str:
    return _text(axis.get("title", {}).get("text", fallback))


def _text(value: str) -> str:
    """Labels in figures are escaped for Plotly; tables escape by themselves."""
    return html.unescape(value)


def _show(value: Any, percent: bool) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value[:16].replace("T", " ") if value[4:5] == "-" and value[10:11] == "T" else value
    if not math.isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.3g}"
