"""Memory where no group of the kernel counts or limits it."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from evaluator.harness import job
from evaluator.harness.job import Job
from evaluator.harness.sandbox.processes import resident_peak
from problems.registry import load_target


def test_the_peak_counts_what_was_given_back() -> None:
    code = "import sys; b = bytearray(64 << 20); del b; print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        alone = resident_peak([child.pid])
        assert resident_peak([child.pid, os.getpid()]) > alone > 64 << 20
        child.communicate(b"")
    assert resident_peak([child.pid]) == 0


def test_ranks_together_may_map_no_more_than_the_job_where_nothing_else_limits_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Job.__new__(Job)
    one.target, one.world_size = load_target("cpu4"), 4
    monkeypatch.setattr(job, "host_layout", lambda: SimpleNamespace(places={}))
    limit = one._address_space()
    assert limit is not None
    assert 4 * (limit - job.ADDRESS_SLACK) == one.target.limits["memory_bytes"]
    monkeypatch.setattr(job, "host_layout", lambda: SimpleNamespace(places={"memory": "somewhere"}))
    assert one._address_space() is None


def test_the_limit_counts_from_what_is_mapped_already() -> None:
    """torch as most people install it brings the libraries for cards: no rank could start with a limit of its own."""
    code = """
import mmap, sys
from evaluator.harness.rank import apart
libraries = mmap.mmap(-1, 4 << 30, prot=mmap.PROT_READ)
apart.limit_address_space(256 << 20)
some = bytearray(128 << 20)
try:
    bytearray(256 << 20)
except MemoryError:
    sys.exit(0)
sys.exit("no limit")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
