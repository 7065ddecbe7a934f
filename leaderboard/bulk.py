"""Whole tables written fast, for invented rows only: COPY on PostgreSQL, INSERT of many rows on SQLite.

Nothing is checked on the way: foreign keys and triggers are off for this connection on PostgreSQL, where that
takes a superuser. The caller marks what depends on the rows as due.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models
from django.db.models import Max


class Table:
    """Rows of one model that wait to be written; columns that a row leaves out take the field's default."""

    def __init__(self, model: type[models.Model]) -> None:
        self.fields = model._meta.concrete_fields
        self.table = model._meta.db_table
        self.names = [str(field.column) for field in self.fields]
        self._at = {name: index for index, name in enumerate(self.names)}
        self._base = [_plain(field.get_default()) for field in self.fields]
        self.rows: list[list[Any]] = []
        self.next_id = 0
        if isinstance(model._meta.pk, models.AutoField):
            self.next_id = 1 + (model._default_manager.aggregate(last=Max("pk"))["last"] or 0)

    def add(self, **values: Any) -> int:
        """Take one row by names of columns; returns its id where ids are counted, else 0."""
        row = self._base.copy()
        number = self.next_id
        if number:
            row[self._at["id"]] = number
            self.next_id += 1
        for name, value in values.items():
            row[self._at[name]] = value
        self.rows.append(row)
        return number

    def write(self) -> None:
        """Write what waits."""
        columns = ", ".join(self.names)
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {self.table} ({columns}) FROM STDIN") as copy:
                    for row in self.rows:
                        copy.write_row(row)
            else:
                marks = ", ".join(["%s"] * len(self.names))
                rows = [[_sqlite(value) for value in row] for row in self.rows]
                cursor.executemany(f"INSERT INTO {self.table} ({columns}) VALUES ({marks})", rows)  # noqa: S608
        self.rows = []


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _sqlite(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return value


@contextmanager
def unchecked(*written: type[models.Model]) -> Iterator[None]:
    """Leave foreign keys and triggers aside meanwhile (PostgreSQL), and set the counters of ids right after."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            cursor.execute("SET session_replication_role = DEFAULT")
        for model in written:
            if isinstance(model._meta.pk, models.AutoField):
                table = model._meta.db_table
                cursor.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"  # noqa: S608
                )
            cursor.execute(f"ANALYZE {model._meta.db_table}")
