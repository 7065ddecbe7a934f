"""Ranks stay on the cores they were given, whatever the file asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.harness.job import shares
from evaluator.harness.judge import Judge
from evaluator.harness.samples import FOLDER
from tests.evaluator.processes import descendants
from tests.harness.sandboxes import needs_bubblewrap

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


def ranks() -> list[int]:
    """Host pids of the ranks of all jobs of this process: what templates have forked."""
    found = []
    for pid, _ in descendants(os.getpid()):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[2:3] == [b"/opt/pkb/rank/template.py"]:
            found += [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found


@pytest.mark.processes
@needs_bubblewrap
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: there is nowhere to move to")
def test_the_kernel_holds_the_ranks_of_both_jobs_where_they_belong(judge: Judge) -> None:
    """Asked from outside during a job: what `cores.hold` does inside could be seen to work and not be called."""
    held: dict[str, list[list[int]]] = {}

    def tell(stage: str, detail: object) -> None:
        held[stage] = sorted(sorted(os.sched_getaffinity(pid)) for pid in ranks())

    found = judge.score(
        problem="allreduce",
        solution=FOLDER / "allreduce_gather_and_sum.py",
        protocol="check",
        on_stage=tell,
    )

    assert found["verdict"] == "correct", found["message"]
    mine = shares(sorted(os.sched_getaffinity(0)), 4)
    assert held["correctness"] == sorted([*mine, *mine])
