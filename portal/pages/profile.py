"""The profile of a submission: its trace to download, its timeline to look at. For those who may see the source."""

import json
from collections import defaultdict
from typing import Any

from django.http import HttpResponse

from evaluator.selectors import artifact
from portal.core.errors import NotFound
from portal.submissions import policies
from portal.submissions.models import Submission

TRACE, TIMELINE = "trace.json.gz", "timeline.json"
COLOURS = {
    "phase": "@line", "operator": "@entrant0", "python": "@entrant4", "wait": "@entrant1", "collective": "@entrant2",
    "kernel": "@entrant5", "copy": "@entrant3",
}  # fmt: skip
LANES = ("call", "host", "collectives", "device")


def trace_download(submission: Submission, viewer: policies.Viewer) -> HttpResponse:
    """The stored trace; NotFound in the same words whether there is none or it is private."""
    found = artifact(submission.pk, TRACE) if policies.can_view_source(viewer, submission) else None
    if found is None:
        raise NotFound(
            "trace.none", "There is no trace here. Mode profile makes one; its author and staff see it."
        )
    with found.file.open("rb") as stream:
        answer = HttpResponse(stream.read(), content_type="application/gzip")
    answer["Content-Disposition"] = f'attachment; filename="trace-{str(submission.pk)[:8]}.json.gz"'
    return answer


def context(submission: Submission, viewer: policies.Viewer) -> dict[str, Any]:
    """{"timeline"} for the page: the figure, its numbers, how much was left out. Empty where there is none to see."""
    found = artifact(submission.pk, TIMELINE) if policies.can_view_source(viewer, submission) else None
    if found is None:
        return {}
    with found.file.open("rb") as stream:
        drawn = json.loads(stream.read())
    return {"timeline": {"figure": figure(drawn), "rows": totals(drawn), **drawn}}


def figure(drawn: dict[str, Any]) -> dict[str, Any]:
    """A Plotly figure: one row per rank and lane, one colour per kind of work."""
    bars: dict[str, list[list[Any]]] = defaultdict(list)
    for bar in drawn["bars"]:
        bars[bar[2]].append(bar)
    used = {(bar[0], bar[1]) for bar in drawn["bars"]}
    rows = sorted(used, key=lambda row: (row[0], LANES.index(row[1])))
    axis = {"gridcolor": "@grid", "linecolor": "@line", "zerolinecolor": "@line", "automargin": True}
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": drawn["kinds"][kind],
            "y": [_row(bar[0], bar[1]) for bar in bars[kind]],
            "base": [bar[3] for bar in bars[kind]],
            "x": [bar[4] for bar in bars[kind]],
            "text": [bar[5] for bar in bars[kind]],
            "textposition": "none",
            "hovertemplate": "%{text}<br>%{x:.1f} µs from %{base:.1f} µs<extra></extra>",
            "marker": {"color": COLOURS[kind], "line": {"width": 0}},
        }
        for kind in drawn["kinds"]
        if bars[kind]
    ]
    layout = {
        "barmode": "overlay",
        "height": 120 + 26 * len(rows),
        "font": {"color": "@ink", "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 120, "r": 16, "t": 16, "b": 48},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "@surface", "bordercolor": "@line", "font": {"color": "@ink"}},
        "legend": {"orientation": "h", "x": 0},
        "xaxis": {**axis, "title": {"text": "µs into the call"}},
        "yaxis": {**axis, "categoryorder": "array", "categoryarray": [_row(*row) for row in reversed(rows)]},
    }
    return {"data": data, "layout": layout}


def _row(rank: int, lane: str) -> str:
    return f"rank {rank} {lane}"


def totals(drawn: dict[str, Any]) -> list[dict[str, Any]]:
    """The same in numbers: µs per rank and kind of work.

    A collective that a backend is at work on is in the host's lane too, while it is asked for: it counts once.
    """
    spent: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    told = {rank for rank, lane, *_ in drawn["bars"] if lane == "collectives"}
    for rank, lane, kind, _, duration, _ in drawn["bars"]:
        if not (kind == "collective" and lane == "host" and rank in told):
            spent[rank][kind] += duration
    shown = [
        kind for kind in drawn["kinds"] if any(kind in row for row in spent.values()) and kind != "phase"
    ]
    return [
        {"rank": rank, "cells": [(drawn["kinds"][kind], row.get(kind, 0.0)) for kind in shown]}
        for rank, row in sorted(spent.items())
    ]
