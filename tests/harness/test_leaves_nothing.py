"""After a hostile job the machine is as before it, and the next job finds nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.harness.judge import Judge
from tests.adversary.catalog import FOLDER

from .sandboxes import needs_bubblewrap, needs_root

pytestmark = [needs_bubblewrap, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(400)]

CHECKOUT = Path(__file__).resolve().parents[2]
LEAVES = FOLDER / "attacks" / "v33_leave_everything.py"
ALL_AT_ONCE = FOLDER / "attacks" / "v34_all_at_once.py"
LOOKS = FOLDER / "honest" / "k38_looks_for_leftovers.py"


@needs_root
def test_the_machine_is_as_before_a_hostile_job() -> None:
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--propagation", "private",
         "sh", "-c", '"$@"; exit $?', "init", sys.executable, "-m", "tests.harness.tidy",
         str(LEAVES), str(ALL_AT_ONCE)],
        cwd=CHECKOUT,
        env={**os.environ, "PKB_HOST_ID": f"tidy-{os.getpid()}"},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)

    assert told["verdicts"][0] == "correct"
    assert told["verdicts"][1] in ("timeout", "out_of_memory", "runtime_error")
    for what, before in told["before"].items():
        assert told["after"][what] == before, what


def leftovers(judge: Judge, path: Path) -> list[str]:
    """What the file reports to have found, on all ranks."""
    found = judge.score(problem="allreduce", solution=path, protocol="check")
    assert found["verdict"] == "correct", found["message"]
    return [line for text in found["log"].values() for line in text.splitlines() if "LEFTOVER" in line]


def test_the_next_job_finds_nothing_of_the_one_before(judge: Judge, tmp_path: Path) -> None:
    both = tmp_path / "both.py"
    both.write_text(LEAVES.read_text() + "\n" + LOOKS.read_text())
    within = leftovers(judge, both)
    afterwards = leftovers(judge, LOOKS)

    kinds = ("canary", "ipc", "listener", "variable", "process")
    assert [kind for kind in kinds if not any(kind in line for line in within)] == []
    assert afterwards == []
