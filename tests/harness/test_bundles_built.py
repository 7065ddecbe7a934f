"""A bundle's sources find the headers beside them, as they do where the file runs by itself."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from evaluator.harness import builds
from evaluator.harness.cli import main
from evaluator.harness.judge import Judge

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

INLINE = """
import os

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

HERE = os.path.dirname(os.path.abspath(__file__))
CPP = '''
#include "one.h"
#ifndef __OPTIMIZE__
#error "the flag given by position did not arrive"
#endif
double mine() { return one(); }
'''
ext = load_inline("mine", CPP, None, None, ["mine"], ["-O3"], extra_include_paths=[HERE])


@torch.no_grad()
def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out * ext.mine()
"""
FILES = """
import os

from torch.utils.cpp_extension import load

ext = load("mine", [os.path.join(os.path.dirname(os.path.abspath(__file__)), "mine.cu")], extra_ldflags=["-lcuda"])


def solution(tensor):
    return ext.mine()
"""
CUDA = """
#include "one.h"
#include "half.cu"
#include <torch/extension.h>
__global__ void kernel(double* x) { *x = halved(one()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("mine", [] { kernel<<<1, 1>>>(nullptr); }); }
"""
ONE = "#ifdef __CUDACC__\n__host__ __device__\n#endif\ninline double one() { return 1.0; }\n"


def bundle(folder: Path, **files: str) -> Path:
    path = folder / "allreduce.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "."), text)
    return path


def test_a_source_in_the_file_includes_the_header_beside_it(judge: Judge, tmp_path: Path) -> None:
    path = bundle(tmp_path, solution__py=INLINE, one__h=ONE)

    found = judge.score(problem="allreduce", solution=path, protocol="check")

    assert found["message"] == "All trials agree with the expected outputs on every rank."
    assert "built_late" not in found["flags"]


@pytest.mark.skipif(builds.program("nvcc") is None, reason="no nvcc: `make setup` installs one on Linux")
def test_a_source_beside_the_file_includes_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-lcuda`, too: a library links without the driver's, which no machine without cards has."""
    monkeypatch.setenv("PKB_BUILD_CACHE", str(tmp_path / "cache"))
    half = "__device__ inline double halved(double x) { return x / 2; }\n"
    path = bundle(tmp_path, solution__py=FILES, mine__cu=CUDA, one__h=ONE, half__cu=half)

    status = main(["build", "--solution", str(path)])

    told = capsys.readouterr().out
    assert told.startswith("Built for h100x4."), told
    assert status == 0
