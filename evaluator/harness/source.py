"""The files of one submission, from a `.py` or a flat `.zip`."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from pathlib import Path

from problems.names import KERNEL_NAMES, MAIN, is_member

MAX_BYTES = 1 << 20
UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, OverflowError, IndexError,
)  # fmt: skip
"""What zipfile raises: RuntimeError for encrypted members and, by a class of it, for other ways of packing."""


class BadFile(ValueError):
    """A file that can be no submission; the text says what to change."""

    code = "source.unreadable"


def solution_files(path: Path) -> dict[str, bytes]:
    """Name -> bytes, always with `solution.py`. Raises BadFile with what to change.

    The portal's door checks uploads in full; this is the harness's own last check, for the command
    line and against a store that was tampered with.
    """
    if not path.is_file():
        raise BadFile(f"{path}: no such file")
    if path.stat().st_size > MAX_BYTES:
        raise BadFile(f"{path}: larger than 1 MiB")
    return read_files(path.name, path.read_bytes())


def read_files(name: str, content: bytes) -> dict[str, bytes]:
    """Name -> bytes of an upload that is in memory. Raises BadFile with what to change."""
    if not name.endswith(".zip"):
        return {MAIN: content}
    try:
        return _from_zip(content)
    except BadFile:
        raise
    except (*UNREADABLE, ValueError) as error:
        raise BadFile(f"{name}: not a readable zip ({error})") from error


def _from_zip(content: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = MAX_BYTES
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            name = member.filename
            if not is_member(name):
                raise BadFile(
                    f"{name!r}: only {MAIN} and files named {KERNEL_NAMES}, all without folders, are taken"
                )
            if name in files:
                raise BadFile(f"the archive holds {name} twice")
            with archive.open(member) as stream:
                content = stream.read(room + 1)
            room -= len(content)
            if room < 0:
                raise BadFile("the archive holds more than 1 MiB")
            files[name] = content
    if MAIN not in files:
        raise BadFile(f"the archive has no {MAIN}")
    return files
