"""Columns of the model board: which there are, and which a reader asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``sort`` is the order that a click on its heading asks for, empty where there is none."""

    key: str
    label: str
    sort: str = ""
    numeric: bool = True
    usual: bool = True
    meaning: str = ""


COLUMNS = (
    Column(
        "fast_1",
        "fast_1@1",
        "fast_1",
        meaning="The chance that one sample of a problem is correct and faster than the reference, as the mean over "
        "the track. Of several samples it counts the average one.",
    ),
    Column(
        "curve",
        "fast_p",
        numeric=False,
        meaning="The same for p times as fast, p from 0.1 to 10; the dashed line is p = 1.",
    ),
    Column(
        "pass_1",
        "pass@1",
        "pass_1",
        meaning="The chance that one sample is correct, however fast, as the mean over the track.",
    ),
    Column(
        "pass_k",
        "pass@k",
        meaning="The chance that at least one of k samples is correct; below it, correct and faster.",
    ),
    Column(
        "geometric_mean",
        "Geo. mean",
        "geometric_mean",
        meaning="Geometric mean of the speedups over the problems solved; for the whole track every other problem "
        "counts as 1.",
    ),
    Column(
        "solved",
        "Solved",
        "solved",
        meaning="Problems with a correct sample among all that were sent; of these, how many have a faster one. One "
        "of which nothing was sent counts as failed.",
    ),
    Column(
        "roof_50",
        "Half of roofline",
        usual=False,
        meaning="Share of the track solved at half of the roofline's speed or more.",
    ),
    Column("samples", "Samples", usual=False, meaning="Samples of a problem: k can be no more."),
    Column("vendor", "Maker", numeric=False, usual=False),
    Column("harness", "Harness", numeric=False, usual=False),
    Column("prompt", "Prompt", numeric=False, usual=False),
    Column("weights", "Weights", numeric=False, usual=False),
    Column("reasoning", "Reasoning", numeric=False, usual=False),
    Column("date", "Date", "date", numeric=False),
)
"""All columns beside place and model, in the order in which they are shown."""


def chosen(keys: Sequence[str]) -> list[Column]:
    """The columns of these keys in the order in which they are shown; the usual ones without any."""
    return [column for column in COLUMNS if (column.key in keys if keys else column.usual)]
