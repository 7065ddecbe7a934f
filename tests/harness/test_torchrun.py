"""Ranks of our template see what ranks of a real torchrun see."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from evaluator.harness.judge import Judge
from evaluator.harness.sandbox import host_grade

NAMES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID", "OMP_NUM_THREADS",
)  # fmt: skip
LOOK = f"""
import json, os, sys
import torch
import torch.distributed as dist
from pathlib import Path
NAMES = {NAMES!r}

def look():
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    facts = {{name: os.environ.get(name) for name in NAMES}}
    facts.update(sum=float(total), world=dist.get_world_size(), rank=dist.get_rank(), argv=len(sys.argv),
                 backend=dist.get_backend())
    return "FACTS " + json.dumps(facts)
"""
SOLUTION = (
    LOOK
    + """
print(look(), flush=True)

def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
)
SCRIPT = (
    LOOK
    + """
dist.init_process_group("gloo")
Path(sys.argv[1], os.environ["RANK"]).write_text(look())
dist.destroy_process_group()
"""
)


def facts(text: str) -> dict[str, Any]:
    line = next(line for line in text.splitlines() if line.startswith("FACTS "))
    found: dict[str, Any] = json.loads(line.removeprefix("FACTS "))
    return found


@pytest.fixture(scope="module")
def ours(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    if host_grade().grade == "none":
        pytest.skip("no sandbox on this host: other sources than the samples don't run")
    path = tmp_path_factory.mktemp("ours") / "solution.py"
    path.write_text(SOLUTION)
    found = judge.score(problem="allreduce", solution=path, protocol="check")
    assert found["verdict"] == "correct", found["message"]
    return [facts(found["log"][f"rank {rank} stdout"]) for rank in range(4)]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("theirs")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "4", "--master_port", "29611",
         str(script), str(folder)],
        check=True,
        timeout=240,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return [facts((folder / str(rank)).read_text()) for rank in range(4)]


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_environment_and_group_are_those_of_torchrun(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    free = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "argv"}
    for rank in range(4):
        assert {k: v for k, v in ours[rank].items() if k not in free} == {
            k: v for k, v in theirs[rank].items() if k not in free
        }
        assert all(ours[rank][name] for name in NAMES), "a variable of torchrun is missing"
        assert ours[rank]["sum"] == 10.0
    assert len({row["MASTER_PORT"] for row in ours}) == 1
