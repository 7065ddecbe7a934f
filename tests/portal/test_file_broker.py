"""The doorbell without a service: several processes write and read the broker's files at the same moment."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from portal.celery import app
from portal.core.file_broker import Channel


@pytest.fixture
def connect(tmp_path: Path) -> Callable[[], Channel]:
    """A channel of its own on the same folders, by the address that the settings use."""
    options = {f"data_folder_{way}": str(tmp_path / "queue") for way in ("in", "out")}
    options |= {"processed_folder": str(tmp_path / "done"), "control_folder": str(tmp_path / "control")}
    for name in ("queue", "done", "control"):
        (tmp_path / name).mkdir()

    def made() -> Any:
        return Connection("filesystem://localhost/", transport_options=options).channel()

    return made


def look_while_written(monkeypatch: pytest.MonkeyPatch, look: Callable[[], None]) -> None:
    """Every file stands there empty for a moment, as it does for other processes; `look` runs then."""
    write = Path.write_text

    def slowly(path: Path, content: str) -> int:
        write(path, "")
        look()
        return write(path, content)

    monkeypatch.setattr(Path, "write_text", slowly)


def test_the_application_uses_it() -> None:
    with app.connection_for_write(url="filesystem://localhost/") as connection:
        assert connection.get_transport_cls().Channel is Channel


def test_a_message_that_is_being_written_is_not_there_yet(
    connect: Callable[[], Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = connect(), connect()
    looked: list[str] = []

    def look() -> None:
        with pytest.raises(Empty):
            reader._get("bell")
        looked.append("empty")

    look_while_written(monkeypatch, look)
    writer._put("bell", {"ring": 1})

    assert looked == ["empty"]
    assert reader._get("bell") == {"ring": 1}
    with pytest.raises(Empty):
        reader._get("bell")


def test_a_message_is_taken_without_a_copy(
    connect: Callable[[], Channel], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the temporary folder is on another file system: a copy could be taken by two at once."""
    rename, elsewhere = os.rename, tmp_path / "elsewhere"
    elsewhere.mkdir()

    def within(source: str, target: str) -> None:
        if str(elsewhere) in str(target):
            raise OSError(errno.EXDEV, "another file system")
        rename(source, target)

    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setattr(os, "rename", within)
    monkeypatch.setattr(shutil, "copyfile", lambda *_, **__: pytest.fail("a copy"))
    channel = connect()
    channel._put("bell", {"ring": 1})

    assert channel._get("bell") == {"ring": 1}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_message_is_delivered_where_the_folder_of_those_taken_is_missing(
    connect: Callable[[], Channel], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "done")
    channel = connect()
    channel._put("bell", {"ring": 1})

    assert channel._get("bell") == {"ring": 1}
    with pytest.raises(Empty):
        channel._get("bell")


def test_a_message_that_cannot_be_taken_is_no_silence(connect: Callable[[], Channel], tmp_path: Path) -> None:
    (tmp_path / "done").rmdir()
    (tmp_path / "done").write_text("not a folder")
    channel = connect()
    channel._put("bell", {"ring": 1})

    with pytest.raises(NotADirectoryError):
        channel._get("bell")


def test_a_full_disk_leaves_no_part_of_a_message(
    connect: Callable[[], Channel], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write = Path.write_text

    def full(path: Path, content: str) -> int:
        write(path, content[:1])
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        connect()._put("bell", {})

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_table_that_is_being_written_is_the_one_before(
    connect: Callable[[], Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = connect(), connect()
    seen: list[int] = []
    look_while_written(monkeypatch, lambda: seen.append(len(reader.get_table("bells"))))

    for queue in ("one", "two", "two"):
        writer._queue_bind("bells", "", "", queue)

    assert seen == [0, 1]
    assert [row.queue for row in reader.get_table("bells")] == ["two", "one"]


def test_no_binding_is_lost_when_many_bind_at_once(connect: Callable[[], Channel]) -> None:
    def bind(number: int) -> None:
        connect()._queue_bind("bells", "", "", f"queue{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bind, range(80)))

    assert len(connect().get_table("bells")) == 80


def test_a_deleted_queue_is_unbound_and_emptied(connect: Callable[[], Channel]) -> None:
    channel = connect()
    for queue in ("one", "two"):
        channel._queue_bind("bells", "", "", queue)
        channel._put(queue, {})

    channel._delete("one", "bells", "", "")

    assert [row.queue for row in channel.get_table("bells")] == ["two"]
    assert (channel._size("one"), channel._size("two")) == (0, 1)
