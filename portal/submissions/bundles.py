"""Zip bundles: `solution.py` with its kernel files, flat. Read member by member under hard limits."""

import io
import stat
import zipfile
import zlib

from portal.core.errors import InvalidInput
from problems.names import KERNEL_NAMES, MAIN, is_member

MAX_MEMBERS = 32
MAX_RATIO = 200
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
)


def looks_like_zip(content: bytes) -> bool:
    """Whether the content begins like a zip archive."""
    return content[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")


def read(content: bytes, *, max_total: int, field: str = "file") -> dict[str, bytes]:
    """Return name -> content of an acceptable bundle. Raises InvalidInput, naming the member at fault.

    What a header claims about sizes is not believed: each member is read up to the limit and no further.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        infos = archive.infolist()
    except DAMAGE as error:
        raise InvalidInput(
            "zip.broken",
            f"The archive cannot be read: {error}. Pack it again and send it whole.",
            field=field,
        ) from error
    if len(infos) > MAX_MEMBERS:
        raise InvalidInput(
            "zip.too_many", f"{len(infos)} members; at most {MAX_MEMBERS} are taken.", field=field
        )
    members: dict[str, bytes] = {}
    left = max_total
    for info in infos:
        _check_member(info, members, field)
        members[info.filename] = unpack(archive, info, left, field)
        left -= len(members[info.filename])
    if MAIN not in members:
        raise InvalidInput(
            "zip.no_solution_py", f"The archive has no {MAIN} at its top level. Add it there.", field=field
        )
    return members


def _check_member(info: zipfile.ZipInfo, seen: dict[str, bytes], field: str) -> None:
    name = info.orig_filename
    if not is_member(name):
        raise InvalidInput(
            "zip.member_name",
            f"Member {name[:80]!r} is not taken. Only {MAIN} and files named {KERNEL_NAMES}, all at the "
            "top level without folders, are.",
            field=field,
        )
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise InvalidInput(
            "zip.not_a_file", f"Member {name!r} is a link or special file. Pack the file itself.", field=field
        )
    if info.flag_bits & 0x1:
        raise InvalidInput("zip.encrypted", f"Member {name!r} is encrypted. Pack it plainly.", field=field)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(
            "zip.method", f"Member {name!r} is neither stored nor deflated. Use plain zip.", field=field
        )
    if name.lower() in {other.lower() for other in seen}:
        raise InvalidInput("zip.duplicate", f"Member {name!r} is there twice. Pack it once.", field=field)


def unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, left: int, field: str) -> bytes:
    """Return the content of a member, at most `left` bytes. Raises InvalidInput, naming the member."""
    try:
        with archive.open(info) as stream:
            data = stream.read(left + 1)
    except DAMAGE as error:
        raise InvalidInput(
            "zip.broken", f"Member {info.filename!r} cannot be read: {error}.", field=field
        ) from error
    if len(data) > left:
        raise InvalidInput(
            "zip.too_large",
            "Unpacked, the members are larger than the limit. Remove some.",
            field=field,
            status=413,
        )
    if len(data) > 4096 and len(data) > MAX_RATIO * max(1, info.compress_size):
        raise InvalidInput(
            "zip.ratio", f"Member {info.filename!r} unpacks to over {MAX_RATIO} times its size.", field=field
        )
    return data
