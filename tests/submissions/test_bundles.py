"""Zip bundles: flat, few, small, plain; whatever their headers claim."""

import io
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.errors import DomainError, InvalidInput
from portal.submissions import bundles
from portal.submissions.validation import MAX_BYTES, read_source

MAIN = b"def solution(x):\n    return x\n"


def archive(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as zf:
        for name, data in members:
            zf.writestr(name, data)
    return out.getvalue()


def code_of(content: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_source(filename="s.zip", content=content, arity=1)
    assert caught.value.field == "file"
    return caught.value.code


def test_solution_with_kernels_is_taken() -> None:
    content = archive(("solution.py", MAIN), ("kernel.cu", b"int x;"), ("part-2.cuh", b""), ("a.h", b""))
    source = read_source(filename="whatever.bin", content=content, arity=1)
    assert (source.name, source.main) == ("solution.zip", MAIN.decode())


@pytest.mark.parametrize(
    "name",
    [
        "../kernel.cu",
        "/kernel.cu",
        "sub/kernel.cu",
        "sub\\kernel.cu",
        "C:kernel.cu",
        ".hidden.cu",
        "kernel.so",
        "conftest.py",
        "Solution.py",
        "folder/",
        "kernel.cu\n",
        "kérnel.cu",
        "k" * 90 + ".cu",
        "kernel.cu ",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    assert code_of(archive(("solution.py", MAIN), (name, b""))) == "zip.member_name"


def test_links_are_refused() -> None:
    link = zipfile.ZipInfo("kernel.cu")
    link.create_system = 3
    link.external_attr = 0o120777 << 16
    assert code_of(archive(("solution.py", MAIN), (link, b"/etc/passwd"))) == "zip.not_a_file"


def test_devices_are_refused() -> None:
    device = zipfile.ZipInfo("kernel.cu")
    device.create_system = 3
    device.external_attr = 0o020666 << 16
    assert code_of(archive(("solution.py", MAIN), (device, b""))) == "zip.not_a_file"


def test_a_bomb_is_stopped_at_the_limit() -> None:
    assert code_of(archive(("solution.py", MAIN), ("k.cu", b"\n" * (MAX_BYTES + 1)))) == "zip.too_large"


def test_many_members_together_are_stopped_at_the_limit() -> None:
    parts = [(f"k{i}.cu", bytes(range(256)) * 1000) for i in range(6)]
    assert code_of(archive(("solution.py", MAIN), *parts)) == "zip.too_large"


def test_a_suspicious_ratio_is_refused() -> None:
    assert code_of(archive(("solution.py", MAIN), ("k.cu", b" " * 900_000))) == "zip.ratio"


def test_a_header_that_lies_about_sizes_is_not_believed() -> None:
    content = archive(("solution.py", MAIN), ("k.cu", b"\n" * (MAX_BYTES + 1)))
    central = content.rindex(b"PK\x01\x02")
    lying = bytearray(content)
    struct.pack_into("<I", lying, central + 24, 10)  # uncompressed size in the central directory
    assert code_of(bytes(lying)) in {"zip.broken", "zip.too_large", "zip.ratio"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (archive(("kernel.cu", b"")), "zip.no_solution_py"),
        (archive(), "zip.no_solution_py"),
        (archive(("solution.py", b"x = 1\n")), "source.no_solution"),
        (archive(("solution.py", b"\xff\xfe")), "source.not_utf8"),
        (archive(("solution.py", MAIN), ("k.cu", b"\0")), "source.nul"),
        (archive(("solution.py", MAIN), method=zipfile.ZIP_BZIP2), "zip.method"),
        (archive(("solution.py", MAIN), *[(f"k{i}.h", b"") for i in range(40)]), "zip.too_many"),
        (archive(("solution.py", MAIN), ("K.cu", b""), ("k.cu", b"")), "zip.duplicate"),
        (b"PK\x03\x04 nonsense", "zip.broken"),
        (b"no zip at all", "zip.broken"),
        (archive(("solution.py", MAIN))[:-30], "zip.broken"),
    ],
)
def test_what_is_wrong_is_named(content: bytes, code: str) -> None:
    assert code_of(content) == code


def test_encrypted_members_are_refused() -> None:
    content = bytearray(archive(("solution.py", MAIN)))
    content[6] |= 1
    central = content.rindex(b"PK\x01\x02")
    content[central + 8] |= 1
    assert code_of(bytes(content)) == "zip.encrypted"


@given(st.data())
def test_a_damaged_archive_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(archive(("solution.py", MAIN), ("k.cu", b"int a;" * 50)))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    refusal = None
    try:
        members = bundles.read(bytes(content), max_total=MAX_BYTES)
    except DomainError as error:
        refusal = error
    assert refusal.code.startswith("zip.") if refusal else bundles.MAIN in members
