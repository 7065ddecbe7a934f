"""Replaying a published result: the same calls, and an honest word where they cannot be the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.cli import main
from evaluator.harness.version import PROTOCOL_VERSION
from problems.registry import load_problem

SOURCE = b"def solution(tensor):\n    return tensor\n"
WRONG = Path(__file__).resolve().parents[1] / "adversary" / "honest" / "w03_wrong_scale.py"


def result(**fields: Any) -> dict[str, Any]:
    problem = load_problem("allreduce")
    values = {
        "schema": 1,
        "harness_version": PROTOCOL_VERSION,
        "problem": {"slug": problem.slug, "revision": problem.score_revision},
        "target": "cpu4",
        "size": "tiny",
        "protocol": "quick",
        "verdict": "correct",
        "code": "correct",
        "seeds": {"secret": "340282366920938463463374607431768211455"},
        "timing": {"speedup": 1.0, "speedup_low": 0.9, "speedup_high": 1.1, "noise_floor": 0.03},
        "source_sha256": hashlib.sha256(SOURCE).hexdigest(),
    }
    return values | fields


class FakeJudge:
    """Remembers what it was asked, and answers with a verdict set by the test."""

    asked: dict[str, Any] = {}
    verdict = "correct"

    def __init__(self, target: str, *, single: bool) -> None:
        self.asked["target"] = target

    def __enter__(self) -> FakeJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.asked["closed"] = True

    def score(self, **asked: Any) -> dict[str, Any]:
        self.asked.update(asked)
        return result(verdict=self.verdict, code=self.verdict)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> type[FakeJudge]:
    monkeypatch.setattr(FakeJudge, "asked", {})
    monkeypatch.setattr(FakeJudge, "verdict", "correct")
    monkeypatch.setattr("evaluator.harness.judge.Judge", FakeJudge)
    return FakeJudge


def command(tmp_path: Path, document: Any, *extra: str, source: bytes = SOURCE) -> int:
    (tmp_path / "result.json").write_text(json.dumps(document))
    (tmp_path / "solution.py").write_bytes(source)
    return main(
        ["replay", str(tmp_path / "result.json"), "--solution", str(tmp_path / "solution.py"), *extra]
    )


def test_the_seed_size_and_protocol_are_those_of_the_result(tmp_path: Path, judge: Any, capsys: Any) -> None:
    assert command(tmp_path, result()) == 0
    assert judge.asked["seed"] == 340282366920938463463374607431768211455
    assert (judge.asked["size"], judge.asked["protocol"], judge.asked["target"]) == ("tiny", "quick", "cpu4")
    assert judge.asked["noise_floor"] == 0.03
    assert judge.asked["closed"]
    said = capsys.readouterr()
    assert "the same verdict" in said.out
    assert said.err == ""


def test_another_verdict_is_exit_1(tmp_path: Path, judge: Any, capsys: Any) -> None:
    judge.verdict = "incorrect"
    assert command(tmp_path, result()) == 1
    assert "ANOTHER VERDICT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fields", "source", "word"),
    [
        ({}, b"x = 1\n", "SHA-256"),
        ({"problem": {"slug": "allreduce", "revision": "old"}}, SOURCE, "other calls"),
        ({"harness_version": "0"}, SOURCE, "protocol version 0"),
    ],
)
def test_what_cannot_be_the_same_is_said(
    tmp_path: Path, judge: Any, capsys: Any, fields: dict[str, Any], source: bytes, word: str
) -> None:
    command(tmp_path, result(**fields), source=source)
    assert word in capsys.readouterr().err


def test_the_portals_answer_and_its_cells_are_understood(tmp_path: Path, judge: Any) -> None:
    cell = result(size="default", seeds={"secret": "7"})
    answer = {"id": "x", "result": result() | {"cells": [result(), cell]}}
    assert command(tmp_path, answer, "--size", "default") == 0
    assert (judge.asked["size"], judge.asked["seed"]) == ("default", 7)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"schema": 2},
        result(seeds=None),
        result(seeds={}),
        result(seeds={"secret": "x"}),
        result(seeds={"secret": float("inf")}),
        result(seeds={"secret": "-1"}),
        result(problem={"slug": "no such problem", "revision": "1"}),
        result(timing={"noise_floor": 0.03}),
        result(timing={"speedup": None, "speedup_low": 1, "speedup_high": 1}),
        result(timing=[1]),
    ],
)
def test_no_result_is_a_usage_error(tmp_path: Path, judge: Any, document: Any) -> None:
    assert command(tmp_path, document) == 2
    assert judge.asked == {}


def test_what_somebody_wrote_is_printed_without_controls(tmp_path: Path, judge: Any, capsys: Any) -> None:
    code = "\x1b[2Jcorrect\u202e" + "x" * 1000
    assert command(tmp_path, result(verdict="correct", code=code)) == 1
    said = capsys.readouterr().out
    assert "recorded: correct [correctxxx" in said
    assert len(said) < 300


def test_an_unknown_size_is_a_usage_error(tmp_path: Path, judge: Any) -> None:
    assert command(tmp_path, result(), "--size", "huge") == 2


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_real_replay_meets_the_same_wrong_element(tmp_path: Path) -> None:
    """Expected and got of the first wrong element are those of the first run, so the values are too."""
    import tomllib

    manifest = tomllib.loads((WRONG.parents[1] / "manifest.toml").read_text())
    problem = next(
        row["problem"] for rows in manifest.values() if isinstance(rows, list) for row in rows
        if isinstance(row, dict) and str(row.get("file", "")).endswith(WRONG.name)
    )  # fmt: skip
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    common = ["--solution", str(WRONG)]
    assert (
        main(["score", "--problem", problem, "--protocol", "check", "--quiet", "--json", str(first), *common])
        == 1
    )
    assert main(["replay", str(first), "--json", str(second), *common]) == 0
    one, two = (json.loads(path.read_text()) for path in (first, second))
    assert one["verdict"] == "incorrect"
    assert one["seeds"] == two["seeds"]
    assert one["ranks"] == two["ranks"]
