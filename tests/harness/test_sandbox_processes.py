"""What processes say of themselves, which may be anything, and how they are told apart nevertheless."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.harness.sandbox import births, names, processes
from evaluator.harness.sandbox.births import SUFFIX, born_under
from evaluator.harness.sandbox.uids import uids_in_use

HOST = "processes-test"

NAMED = """
import ctypes, time
ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)
print(flush=True)
time.sleep(600)
"""

# prctl(PR_SET_MM_MAP): the environment is 4 MiB of zeros.
ENVIRONMENT = """
import ctypes, mmap, struct, time
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
size = 4 << 20
memory = mmap.mmap(-1, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
words = [int(word) for word in open("/proc/self/stat").read().rpartition(")")[2].split()[1:]]
code, data, stack, arguments = words[22:24], words[41:44], words[24], words[44:46]
layout = struct.pack("<11QQIi", *code, *data[:2], data[2], libc.sbrk(0), stack, *arguments, at, at + size, 0, 0, -1)
print(libc.prctl(35, 14, ctypes.c_char_p(layout), ctypes.c_ulong(len(layout)), 0), flush=True)
time.sleep(600)
"""


@contextmanager
def process(code: str) -> Iterator[tuple[int, str]]:
    """One that runs ``code``, and the first line it printed."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child.pid, child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize("name", [b"\xff\xfe", b") R 1 (\xc3", b"\x1cVmHWM: much", b"\x85Uid: x"])
def test_a_name_may_be_anything(name: bytes) -> None:
    with process(NAMED.format(name=name)) as (pid, _):
        assert Path(f"/proc/{pid}/comm").read_bytes() == name + b"\n"

        seen = processes.living()[pid]

        assert seen.parent == os.getpid()
        assert processes.start_ticks(pid) == seen.start
        assert processes.state(pid) in "RSD"
        assert processes.name(pid)
        assert processes.firsts_of_namespaces([pid]) == []
        assert processes.resident_peak([pid]) > 1 << 20
        assert os.geteuid() in uids_in_use()
        assert not names.lease_is_dead(HOST, f"p{pid}-{seen.start:x}")


def test_an_environment_is_read_only_so_far() -> None:
    with process(ENVIRONMENT) as (pid, told):
        if told != "0":
            pytest.skip("this kernel lets no process say where its environment lies")

        assert len(births._environment(pid)) < 1 << 20


def test_a_record_that_another_worker_has_just_removed(tmp_path: Path) -> None:
    (tmp_path / f"job{SUFFIX}").symlink_to(tmp_path / "gone")

    assert list(born_under(tmp_path)) == []
