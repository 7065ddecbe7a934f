"""Kombu's filesystem transport with files that are never seen half-written.

The original makes a message or a table of bindings under its name and fills it afterwards. Whoever reads in between
(another process that starts at the same moment) finds an empty file, and a worker ends with a JSONDecodeError. Here
files get their name when they are whole. It also takes a message by moving it to the temporary folder, which on another
file system is a copy: of two who take the same message one reads what the other is writing, and the message is lost.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any

from kombu.transport import filesystem, virtual
from kombu.transport.filesystem import exchange_queue_t
from kombu.utils.json import dumps, loads

Table = list[Any]
"""Of `exchange_queue_t`."""


def _appear(path: Path, content: str) -> None:
    """Write a file that is there as a whole or not at all. The temporary name is no message's and no table's."""
    hidden = path.with_name(f".{uuid.uuid4()}")
    try:
        hidden.write_text(content)
        hidden.replace(path)
    except BaseException:
        hidden.unlink(missing_ok=True)  # the disk is full, say
        raise


class Channel(filesystem.Channel):
    """Messages and tables appear by a rename, messages go by one; tables change under a lock of their own.

    The folders for messages and for those taken are on one file system.
    """

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        _appear(Path(self.data_folder_out, name), dumps(payload))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] == f"{queue}.msg":
                try:
                    taken = self._take(name)
                except FileNotFoundError:
                    continue  # somebody else has it
                content = taken.read_text()
                if not self.store_processed:
                    taken.unlink()
                return loads(content)
        raise Empty

    def _take(self, name: str) -> Path:
        """Move a message to those taken. FileNotFoundError: it is gone, not the folder it should go to."""
        message, taken = Path(self.data_folder_in, name), Path(self.processed_folder, name)
        try:
            return message.rename(taken)
        except FileNotFoundError:
            taken.parent.mkdir(parents=True, exist_ok=True)
            return message.rename(taken)

    def get_table(self, exchange: str) -> Table:
        """The queues bound to an exchange."""
        try:
            return [exchange_queue_t(*row) for row in loads(self._table(exchange).read_text())]
        except FileNotFoundError:
            return []

    def _table(self, exchange: str) -> Path:
        file: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]
        return file

    def _change(self, exchange: str, change: Callable[[Table], Table]) -> None:
        file = self._table(exchange)
        self.control_folder.mkdir(exist_ok=True)
        with Path(self.control_folder, ".lock").open("a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            table = self.get_table(exchange)
            changed = change(table)
            if changed != table:
                _appear(file, dumps(changed))

    def _queue_bind(
        self, exchange: str | None, routing_key: str | None, pattern: str | None, queue: str | None
    ) -> None:
        bound = exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change(exchange or "", lambda table: table if bound in table else [bound, *table])

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any
    ) -> None:
        virtual.Channel._delete(self, queue, exchange, routing_key, pattern, *args, **kwargs)
        bound = exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change(exchange, lambda table: [row for row in table if row != bound])


class Transport(filesystem.Transport):
    """`filesystem://` in this project (`portal/celery.py`)."""

    Channel = Channel
