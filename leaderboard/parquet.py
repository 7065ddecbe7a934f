"""Rows as Parquet. Only the task that builds an export imports this: pyarrow is large, and no page needs it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from leaderboard.exports import Column

BATCH = 50_000
_KINDS = {
    "int64": pyarrow.int64(),
    "float64": pyarrow.float64(),
    "bool": pyarrow.bool_(),
    "string": pyarrow.string(),
    "list": pyarrow.list_(pyarrow.string()),
}


def write(path: Path, columns: dict[str, Column], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows in groups of 50,000; each column carries its meaning and unit as metadata."""
    fields = [
        pyarrow.field(name, _KINDS[column.kind], metadata={"meaning": column.meaning, "unit": column.unit})
        for name, column in columns.items()
    ]
    schema = pyarrow.schema(fields)
    source = iter(rows)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(source, BATCH)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
