"""The files of one submission, from a `.py` or a flat `.zip`."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from problems.names import KERNEL_NAMES, MAIN, is_member

MAX_BYTES = 1 << 20


def solution_files(path: Path) -> dict[str, bytes]:
    """Name -> bytes, always with `solution.py`. Raises ValueError with what to change.

    The portal's door checks uploads in full; this is the harness's own last check, for the command
    line and against a store that was tampered with.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path}: larger than 1 MiB")
    return read_files(path.name, path.read_bytes())


def read_files(name: str, content: bytes) -> dict[str, bytes]:
    """Name -> bytes of an upload that is in memory. Raises ValueError with what to change."""
    if not name.endswith(".zip"):
        return {MAIN: content}
    try:
        return _from_zip(content)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name}: not a readable zip ({error})") from error


def _from_zip(content: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = MAX_BYTES
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            name = member.filename
            if not is_member(name):
                raise ValueError(
                    f"{name!r}: only {MAIN} and files named {KERNEL_NAMES}, all without folders, are taken"
                )
            with archive.open(member) as stream:
                content = stream.read(room + 1)
            room -= len(content)
            if room < 0:
                raise ValueError("the archive holds more than 1 MiB")
            files[name] = content
    if MAIN not in files:
        raise ValueError(f"the archive has no {MAIN}")
    return files
