"""CUDA files through the compiler, on a machine without a card: what is ours to compile must compile."""

from __future__ import annotations

import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.harness import ahead
from evaluator.harness.builds import BUILD_PATH, Builder, BuildFailed, check_unit
from evaluator.harness.judge import Judge
from evaluator.harness.sandbox import wheel_toolkits
from evaluator.harness.source import solution_files
from problems.registry import load_problem, load_target
from tests.harness.sandboxes import run_inside

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
OURS = (
    *(ROOT / "problems" / "samples").glob("*_cuda.py"),
    *(ROOT / "tests" / "adversary" / "cuda").glob("g*.py"),
)
NVCC = next((str(path) for folder in BUILD_PATH if (path := Path(folder, "nvcc")).is_file()), None)
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc: `make setup` installs one on Linux")


def recorded(judge: Judge, path: Path) -> list[dict[str, Any]]:
    template = judge.take()
    judge.refill()
    units = ahead.recorded(template, load_problem("allreduce"), solution_files(path))
    return [check_unit(unit) for unit in units]


@needs_nvcc
@pytest.mark.timeout(400)
def test_every_cuda_source_of_ours_compiles_for_its_card(judge: Judge, tmp_path: Path) -> None:
    """The device's code alone: torch's part of a build takes ten seconds each."""
    headers = [f"-I{Path(torch.__file__).parent / 'include'}", f"-I{sysconfig.get_paths()['include']}"]
    flags = ["-std=c++20", "-arch=sm_90a", "--ptx", "-DTORCH_EXTENSION_NAME=it", *headers]
    sources = []
    for path in OURS:
        for number, unit in enumerate(recorded(judge, path)):
            sources.append(tmp_path / f"{path.stem}_{number}.cu")
            sources[-1].write_text("\n".join(unit["sources"]["cuda"]))

    def errors(source: Path) -> str:
        done = subprocess.run(
            [str(NVCC), *flags, str(source)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        told = dict(zip([source.name for source in sources], pool.map(errors, sources), strict=True))
    assert len(told) >= 11
    assert {name: words for name, words in told.items() if words} == {}


def test_cuda_sources_are_refused_in_words_where_there_are_no_cards(judge: Judge) -> None:
    found = judge.score(
        problem="allgather",
        solution=ROOT / "problems" / "samples" / "allgather_vector_pull_cuda.py",
        protocol="check",
    )
    assert found["code"] == "build_error.needs_cuda"
    assert "cpu4 has none; choose a target with cards" in found["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"sources": {"kernels.cu": ""}},
        {"sources": {"cpp": [], "cuda": ["x"]}},
        {"sources": {"a.cpp": ""}, "with_cuda": True},
    ],
)
def test_whatever_asks_for_cuda_needs_cards(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="mine has CUDA sources") as refused:
        Builder(load_target("cpu4"), tmp_path).build([{"form": "files", "name": "mine", **fields}], 10.0)
    assert refused.value.code == "needs_cuda"


@pytest.mark.skipif(not wheel_toolkits(), reason="no toolkit is installed as wheels")
def test_a_toolkit_of_wheels_is_hidden_from_ranks_like_every_compiler() -> None:
    code = """
import glob, os
for part in ("bin", "nvvm", "lib"):
    folders = glob.glob(f"/opt/pkb/venv/lib/python*/site-packages/nvidia/cu*/{part}")
    print(part, sum(len(os.listdir(path)) for path in folders))
"""
    shown = {}
    for allowed in (True, False):
        status, out, err = run_inside(code, allow_compiler=allowed)
        assert (status, err) == (0, "")
        shown[allowed] = {name: int(count) for name, count in (line.split() for line in out.splitlines())}
    assert shown[True]["bin"] > 5
    assert shown[False] == shown[True] | {"bin": 0, "nvvm": 0}
