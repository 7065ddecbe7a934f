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


COLUMNS = (
    Column("fast_1", "fast_1@1", "fast_1"),
    Column("curve", "fast_p", numeric=False),
    Column("pass_1", "pass@1", "pass_1"),
    Column("pass_k", "pass@k"),
    Column("geometric_mean", "Geo. mean", "geometric_mean"),
    Column("solved", "Solved", "solved"),
    Column("roof_50", "Half of roofline", usual=False),
    Column("samples", "Samples", usual=False),
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
