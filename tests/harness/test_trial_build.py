"""`build`: what an author without a card is told of their CUDA."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.harness import builds, trialbuild
from evaluator.harness.cli import main

pytestmark = [pytest.mark.processes, pytest.mark.timeout(400)]

SAMPLES = Path(__file__).resolve().parents[2] / "problems" / "samples"
needs_nvcc = pytest.mark.skipif(
    builds.program("nvcc") is None, reason="no nvcc: `make setup` installs one on Linux"
)
SCATTER = (SAMPLES / "scatter_vector_push_cuda.py").read_text()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_BUILD_CACHE", str(tmp_path / "cache"))


def built(path: Path, *more: str) -> int:
    return main(["build", "--solution", str(path), *more])


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


@needs_nvcc
def test_registers_and_mechanism_are_told_without_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert built(SAMPLES / "scatter_vector_push_cuda.py", "--json", str(tmp_path / "out.json")) == 0
    out = capsys.readouterr().out
    assert out.startswith("Built for h100x4.\nscatter_vector_push (")
    assert "  void push<uint4>(Peers, " in out  # as in the source, not as the linker writes it
    assert "(sm_90a): " in out
    assert "registers, 0 bytes spilled" in out
    assert "moves data by: SM load/store (possibly)" in out
    (unit,) = json.loads((tmp_path / "out.json").read_text())["units"]
    assert len(unit["kernels"]) == 3
    assert len(unit["cubin_sha256"]) == 64
    (library,) = [path for path in (tmp_path / "cache").iterdir() if not path.suffix]
    assert library.read_bytes()[:4] == b"\x7fELF"
    assert built(SAMPLES / "scatter_vector_push_cuda.py") == 0
    assert "(from the cache)" in capsys.readouterr().out


@needs_nvcc
def test_the_first_error_names_the_authors_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = SCATTER.replace("struct Peers {", "struct Peers { nothing here;")
    line = next(n for n, row in enumerate(wrong.splitlines(), 1) if "nothing here" in row)
    assert built(written(tmp_path, wrong)) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith('The extension did not build: identifier "nothing" is undefined')
    assert f"(line {line} of your file)" in first


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("def solution(x):\n    return x\n", 0, trialbuild.NOTHING),
        ("import torch\nx = torch.ones(1, device='cuda')\n", 1, f"{trialbuild.NOT_IMPORTED} It ended with "),
        (SCATTER + "\nraise KeyError('later')\n", 3, "nvcc"),
    ],
)
def test_what_is_not_built_is_told_why(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    status: int,
    told: str,
) -> None:
    monkeypatch.setattr(builds, "BUILD_PATH", ("/usr/bin",))
    assert built(written(tmp_path, text)) == status
    printed = capsys.readouterr()
    assert told in printed.out + printed.err


def test_an_import_that_ends_after_its_builds_is_told_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "#include <pybind11/pybind11.h>\\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"
    text = (
        "from torch.utils.cpp_extension import load_inline\n"
        f"load_inline(name='tiny', cpp_sources='{source}', no_implicit_headers=True)\n"
        "raise KeyError('later')\n"
    )
    assert built(written(tmp_path, text), "--target", "cpu4") == 0
    assert "After that its import ended with KeyError: 'later'" in capsys.readouterr().out


def test_cuda_for_a_target_without_cards_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("scatter_vector_push_cuda.py", "allreduce_two_shot_cuda.py"):
        assert built(SAMPLES / name, "--target", "cpu4") == 1
        assert "cpu4 has none; choose a target with cards" in capsys.readouterr().out
