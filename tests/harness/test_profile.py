"""The look after a score: it explains, and whatever the file does meanwhile changes no verdict."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.judge import Judge
from evaluator.harness.looking import TIMELINE, TRACE
from tests.harness.sandboxes import needs_bubblewrap

pytestmark = [pytest.mark.serial, needs_bubblewrap]

HEAD = "import time\nimport torch\nimport torch.distributed as dist\n"
SLEEPY = (
    HEAD
    + """

def solution(tensor):
    out = tensor.clone()
    time.sleep(0.05)
    dist.all_reduce(out)
    return out
"""
)
ENDS = (
    HEAD
    + """
calls = 0


def solution(tensor):
    global calls
    calls += 1
    if calls > 5:
        raise SystemExit(3)
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
)


def score(judge: Judge, text: str, folder: Path, **options: Any) -> dict[str, Any]:
    path = folder / "solution.py"
    path.write_text(text)
    return judge.score(problem="allreduce", solution=path, **options)


def test_a_profile_is_taken_after_the_score(judge: Judge, tmp_path: Path) -> None:
    kept: dict[str, bytes] = {}
    stages: list[str] = []

    found = score(
        judge,
        SLEEPY,
        tmp_path,
        protocol="profile",
        on_artifact=kept.__setitem__,
        on_stage=lambda stage, detail: stages.append(stage),
    )

    assert (found["verdict"], found["protocol"]) == ("correct", "profile")
    assert found["timing"]["pairs"] == 20
    assert stages.index("profiling") > stages.index("timing")
    (stall,) = [row for row in found["findings"] if row["kind"] == "host_stall" and row["line"] == 7]
    assert stall["cost_us"] >= 49_000
    assert [(row["name"], row["calls"]) for row in found["movement"]["collectives"]] == [("all_reduce", 1)]
    assert json.loads(json.dumps(found, allow_nan=False)) == found

    trace = json.loads(zlib.decompress(kept[TRACE], 31))["traceEvents"]
    assert {row["pid"] for row in trace} == {0, 1, 2, 3}
    drawn = json.loads(kept[TIMELINE])
    assert {bar[0] for bar in drawn["bars"]} == {0, 1, 2, 3}
    assert {bar[2] for bar in drawn["bars"]} >= {"phase", "operator", "collective", "python"}


def test_a_file_that_ends_in_the_traced_call_stays_correct(judge: Judge, tmp_path: Path) -> None:
    found = score(judge, ENDS, tmp_path, protocol="check")

    assert found["verdict"] == "correct"
    assert found["movement"]["collectives"] == []
    assert "the traced call failed" in found["look_notes"][0]
    assert found["findings"] == []


BIG = (
    HEAD
    + """

def solution(tensor):
    out = tensor.clone()
    torch.ones(48 << 20)  # 192 MiB a rank, given back at once
    dist.all_reduce(out)
    return out
"""
)


def test_peak_memory_of_both_sides_without_the_profilers(judge: Judge, tmp_path: Path) -> None:
    memory = score(judge, BIG, tmp_path, protocol="check")["memory"]

    more = memory["peak_bytes"] - memory["reference_peak_bytes"]
    assert 150 << 20 < more < 1400 << 20
    assert memory["device_peak_bytes"] is memory["reference_device_peak_bytes"] is None
