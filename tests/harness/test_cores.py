"""Ranks stay on the cores they were given, whatever the file asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.harness.job import shares

RANK = Path(__file__).resolve().parents[2] / "evaluator" / "harness" / "rank"
PROBE = """
import json, os, sys, threading
sys.path.insert(0, sys.argv[1])
import cores
every = sorted(os.sched_getaffinity(0))
cores.hold(every[-1:])
seen = []
def move():
    os.sched_setaffinity(0, every)
    seen.append(sorted(os.sched_getaffinity(0)))
move()
thread = threading.Thread(target=move)
thread.start(); thread.join()
print(json.dumps([every, seen]))
"""


@pytest.mark.parametrize(
    ("cores", "ranks", "want"),
    [
        ([0, 1], 4, [[0], [1], [0], [1]]),
        ([2, 3, 5, 7, 8, 9, 10, 11], 4, [[2, 3], [5, 7], [8, 9], [10, 11]]),
        ([4], 2, [[4], [4]]),
        ([0, 1, 2], 2, [[0], [1]]),
        ([0, 1, 2], 1, [[0, 1, 2]]),
    ],
)
def test_every_rank_gets_an_equal_share(cores: list[int], ranks: int, want: list[list[int]]) -> None:
    assert shares(cores, ranks) == want


def test_a_rank_and_its_threads_cannot_leave_their_cores() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(RANK)], capture_output=True, text=True, check=True
    )
    every, seen = json.loads(done.stdout)
    assert every == sorted(os.sched_getaffinity(0))
    assert seen == [every[-1:], every[-1:]]
