"""The command line says what is wrong with its arguments before it starts a single rank."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness import cli
from evaluator.harness.cli import main

GOOD = b"def solution(tensor):\n    return tensor\n"


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return out.getvalue()


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("something was started")

    for name in ("judge.Judge", "many.score_many", "trustedranks.TrustedRanks", "selftest.run"):
        monkeypatch.setattr(f"evaluator.harness.{name}", started)


SOURCES = {
    "empty": ("s.py", b"", "empty"),
    "blank": ("s.py", b" \n", "empty"),
    "not UTF-8": ("s.py", b"x = '\xff'\n", "byte 5 (0xff) is not UTF-8"),
    "NUL": ("s.py", b"x = 1\0\n", "NUL byte at offset 5"),
    "no zip": ("s.zip", b"PK nonsense", "not a readable zip"),
    "zip without solution.py": ("s.zip", zipped(kernel_cu=b"int x;"), "no solution.py"),
    "zip with what the door refuses": (
        "s.zip",
        zipped(solution_py=GOOD, a_cpp=b"int x;"),
        "'a.cpp': only solution.py and files named *.cu, *.cuh, *.h",
    ),
    "zip with a member not UTF-8": ("s.zip", zipped(solution_py=GOOD, k_cu=b"\xff"), "member k.cu: byte 0"),
    "too large": ("s.py", b"#" * (1 << 20) + b"\n", "larger than 1 MiB"),
}


@pytest.mark.parametrize(("name", "data", "word"), SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("command", ["score", "replay"])
def test_a_file_that_cannot_be_a_solution(
    tmp_path: Path, capsys: Any, command: str, name: str, data: bytes, word: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    (tmp_path / "result.json").write_text("{}")
    head = (
        ["score", "--problem", "allreduce"] if command == "score" else ["replay", f"{tmp_path}/result.json"]
    )
    assert main([*head, "--solution", str(path)]) == 2
    said = capsys.readouterr().err
    assert word in said
    assert str(path) in said


@pytest.mark.parametrize("text", [b"", b"not json", b"[1, 2]", b"{}", b"\xff", b"[" * 100_000])
def test_a_replay_of_what_is_no_result(tmp_path: Path, capsys: Any, text: bytes) -> None:
    (tmp_path / "s.py").write_bytes(GOOD)
    path = tmp_path / "result.json"
    path.write_bytes(text)
    assert main(["replay", str(path), "--solution", str(tmp_path / "s.py")]) == 2
    assert str(path) in capsys.readouterr().err


COMMANDS = {
    "missing solution": (["score", "--problem", "allreduce", "--solution", "{t}/none.py"], "no such file"),
    "folder as solution": (["score", "--problem", "allreduce", "--solution", "{t}"], "not a file"),
    "unknown problem": (
        ["score", "--problem", "allreduc", "--solution", "{t}/s.py"],
        "no problem 'allreduc'",
    ),
    "unknown target": (
        ["score", "--problem", "1", "--solution", "{t}/s.py", "--target", "x"],
        "no target 'x'",
    ),
    "unknown size": (["score", "--problem", "1", "--solution", "{t}/s.py", "--size", "x"], "no size 'x'"),
    "a target without times": (
        ["score", "--problem", "1", "--solution", "{t}/s.py", "--target", "h200x1"],
        "--protocol check",
    ),
    "negative seed": (
        ["score", "--problem", "1", "--solution", "{t}/s.py", "--seed", "-1"],
        "must not be negative",
    ),
    "result into nowhere": (
        ["score", "--problem", "1", "--solution", "{t}/s.py", "--json", "{t}/no/out.json"],
        "cannot be written",
    ),
    "missing result": (["replay", "{t}/none.json", "--solution", "{t}/s.py"], "no such file"),
    "missing folder": (["score-many", "--folder", "{t}/none"], "no such folder"),
    "missing manifest": (["score-many", "--manifest", "{t}/none.toml"], "no such file"),
    "no workers": (["score-many", "--workers", "0"], "--workers must be more than 0"),
    "no seeds": (["gate", "--seeds", "0"], "--seeds must be more than 0"),
    "unknown target of a self-test": (["selftest", "--target", "x"], "no target 'x'"),
    "part of a target's name": (
        ["selftest", "--target", "cpu"],
        "no target 'cpu'; did you mean cpu4? Targets: ",
    ),
    "missing gate": (["table", "--gate", "{t}/none.json"], "no such file"),
}


@pytest.mark.parametrize(("command", "word"), COMMANDS.values(), ids=COMMANDS)
def test_arguments_that_cannot_be(tmp_path: Path, capsys: Any, command: list[str], word: str) -> None:
    (tmp_path / "s.py").write_bytes(GOOD)
    assert main([part.format(t=tmp_path) for part in command]) == 2
    assert word in capsys.readouterr().err


def test_a_missing_file_is_told_without_loading_torch() -> None:
    code = (
        "import sys; from evaluator.harness.cli import main; "
        "status = main(['score', '--problem', 'allreduce', '--solution', 'none.py']); "
        "sys.exit(9 if 'torch' in sys.modules else status)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "none.py: no such file\n")


@pytest.mark.parametrize("command", ["score", "score-many", "build", "health", "selftest"])
def test_help_tells_targets_and_defaults(command: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "b200x4, cpu4, h100x4" in told
    assert f"default {'h100x4' if command == 'build' else 'cpu4'}" in told
    if command.startswith("score"):
        assert f"default {'quick' if command == 'score' else 'check'}" in told


def test_the_sites_word_for_paper_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "s.py").write_bytes(GOOD)
    seen: list[str] = []
    monkeypatch.setattr(cli, "_score", lambda args: seen.append(args.protocol) or 0)
    assert main(["score", "--problem", "1", "--solution", f"{tmp_path}/s.py", "--protocol", "score"]) == 0
    assert seen == ["paper"]


def test_a_target_without_cards_says_so_when_its_health_is_asked(capsys: Any) -> None:
    assert main(["health", "--target", "cpu4"]) == 0
    assert "cpu4 has no cards" in capsys.readouterr().err
