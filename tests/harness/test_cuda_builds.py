"""CUDA files through the compiler, on a machine without a card: what is ours to compile must compile."""

from __future__ import annotations

import select
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.harness import ahead, verdict
from evaluator.harness.builds import BUILD_PATH, Builder, BuildFailed, check_unit
from evaluator.harness.job import Job
from evaluator.harness.judge import Judge
from evaluator.harness.source import solution_files
from problems.registry import load_problem, load_target

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


def inline(*, cpp: str = "", cuda: str = "") -> dict[str, Any]:
    lists = ("functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
    sources = {"cpp": [cpp], "cuda": [cuda] if cuda else []}
    return {"form": "inline", "name": "mine", "sources": sources, "no_implicit_headers": True} | {
        key: [] for key in lists
    }


def test_a_recorder_stays_until_it_was_heard(judge: Judge) -> None:
    """One that ended once it had spoken was taken for one that crashed: on a busy machine its builds came late."""
    path = ROOT / "problems" / "samples" / "allgather_vector_pull_cuda.py"
    template = judge.take()
    judge.refill()
    problem = load_problem("allgather")
    recorder = Job(template, problem, "recorder", solution_files(path), 0, ahead.RECORD_SLOT, record=True)
    try:
        assert select.select([recorder.sockets[0]], [], [], 60.0)[0]
        assert not select.select([template.control], [], [], 1.0)[0], (
            "its end is reported before it was heard"
        )
        units, note = recorder.recorded_units(10.0)
    finally:
        recorder.close()
    assert (len(units), note) == (1, "")


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
        {"form": "inline", "sources": {"cpp": [], "cuda": ["x"]}},
        {"sources": {"a.cpp": ""}, "with_cuda": True},
    ],
)
def test_whatever_asks_for_cuda_needs_cards(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="mine has CUDA sources") as refused:
        Builder(load_target("cpu4"), tmp_path).build([{"name": "mine", "form": "files", **fields}], 10.0)
    assert refused.value.code == "needs_cuda"


@needs_nvcc
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "extern __device__ int gone(int);\n__global__ void k(int* p) { *p = gone(1); }",
            "Unresolved extern function",
        ),
        ('__global__ void k() { asm volatile("nonsense.u32;"); }', "Not a name of any known instruction"),
        (
            "__global__ void k(int* p) { __shared__ int s[99999]; s[*p] = 1; *p = s[p[1]]; }",
            "too much shared data",
        ),
    ],
)
def test_what_the_assembler_refuses_is_told(source: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed) as refused:
        Builder(load_target("h200x1"), tmp_path).build([inline(cuda=source)], 100.0)
    assert told in verdict.from_build(refused.value, source).message


@needs_nvcc
@pytest.mark.timeout(200)
def test_a_function_that_a_kernel_calls_does_not_hide_the_kernels_stack(tmp_path: Path) -> None:
    source = """
__device__ __noinline__ int helper(int x, int* p) {
  int a[64];
  for (int i = 0; i < 64; ++i) a[i] = p[i] * x;
  for (int i = 0; i < 64; ++i) a[(i * x) & 63] += a[i];
  return a[x & 63];
}
__global__ void k(int* p) { p[0] = helper(p[1], p); }
"""
    _, built = Builder(load_target("h200x1"), tmp_path).build([inline(cuda=source)], 100.0)
    ((row,),) = (facts.kernels() for facts in built.facts)
    assert row["stack_bytes"] == 256


def test_of_a_long_log_the_first_error_is_kept(tmp_path: Path) -> None:
    source = "int a = mistaken;\n" + "\n".join(f"int b{i} = other{i};" for i in range(3000))
    with pytest.raises(BuildFailed) as refused:
        Builder(load_target("cpu4"), tmp_path).build([inline(cpp=source)], 100.0)
    found = verdict.from_build(refused.value, source)
    assert "mistaken" in found.message
    assert found.first_line == 1
