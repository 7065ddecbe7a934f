"""Builds ahead: recorded and compiled while another file is scored, found ready when the turn comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.harness import ahead
from evaluator.harness.ahead import Ahead, content_key
from evaluator.harness.builds import Builder, BuildFailed, Built
from evaluator.harness.errors import JudgeFault
from evaluator.harness.judge import Judge
from evaluator.harness.samples import FOLDER
from problems.registry import load_problem, load_target
from tests.harness.sandboxes import needs_bubblewrap

FILES = {"solution.py": b"from torch.utils.cpp_extension import load_inline\n"}
UNITS = [{"name": "unit"}]


class Recorder:
    """Stands in for template, recorder and compiler: what is tested is the order of things."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fails: Exception | None = None) -> None:
        self.built: list[list[Any]] = []
        self.fails = fails
        monkeypatch.setattr(ahead, "Template", lambda target, name: self)
        monkeypatch.setattr(ahead, "recorded", lambda template, problem, files: UNITS)

    def wait(self) -> None: ...

    def close(self) -> None: ...

    def build(
        self, units: list[Any], limit_s: float, should_stop: Any, beside: Any, *, files: Any
    ) -> tuple[dict[str, Path], Built]:
        self.built.append(units)
        if self.fails is not None:
            raise self.fails
        return {}, Built()


def made(recorder: Any) -> Ahead:
    return Ahead(load_target("cpu4"), recorder)


def test_a_file_is_built_once_and_found_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(recorder := Recorder(monkeypatch))
    problem = load_problem("allreduce")

    assert one.take(FILES, 1.0) is None
    assert one.offer(problem, FILES)
    assert not one.offer(problem, dict(FILES))
    assert one.take(FILES, 20.0) == UNITS
    assert recorder.built == [UNITS]
    one.close()


def test_a_file_that_builds_nothing_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(Recorder(monkeypatch))

    assert not one.offer(load_problem("allreduce"), {"solution.py": b"import torch\n"})
    one.close()


@pytest.mark.parametrize(
    ("error", "units"),
    [
        (BuildFailed("compiler", "no"), UNITS),
        (JudgeFault("no template"), None),
        (RecursionError("odd units"), None),
    ],
)
def test_what_fails_ahead_is_left_to_the_files_own_turn(
    error: Exception, units: list[Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(recorder := Recorder(monkeypatch, fails=error))
    one.offer(load_problem("allreduce"), FILES)

    assert one.take(FILES, 20.0) == units
    recorder.fails = None
    after = {**FILES, "other.py": b""}
    one.offer(load_problem("allreduce"), after)
    assert one.take(after, 20.0) == UNITS
    one.close()


def test_every_file_counts_for_the_key() -> None:
    assert content_key(FILES) != content_key({**FILES, "k.cu": b""})
    assert content_key({"a": b"bc"}) != content_key({"ab": b"c"})


@pytest.mark.processes
@needs_bubblewrap
def test_cpu_targets_do_not_build_ahead() -> None:
    with Judge("cpu4", warm=0) as judge:
        assert not judge.prepare(problem="allreduce", solution=FOLDER / "allreduce_cpp_sum.py")


@pytest.mark.processes
@needs_bubblewrap
def test_a_build_ahead_is_a_cached_build_in_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_BUILD_CACHE", str(tmp_path / "cache"))
    solution = tmp_path / "solution.py"
    plain = '#include <cmath>\nextern "C" double twice(double x) { return 2 * std::fabs(x); }\n'
    solution.write_text(
        "import torch.distributed as dist\n"
        "from torch.utils.cpp_extension import load\n\n"
        f"open('/tmp/plain.cpp', 'w').write({plain!r})\n"
        "load('plain', ['/tmp/plain.cpp'], is_python_module=False)\n\n\n"
        "def solution(tensor):\n    out = tensor.clone()\n    dist.all_reduce(out)\n    return out\n"
    )
    with Judge("cpu4", ahead=True) as judge:
        assert judge.prepare(problem="allreduce", solution=solution)
        found = judge.score(problem="allreduce", solution=solution, protocol="check")

    assert found["verdict"] == "correct", found["message"]
    assert found["build"]["cached"]
    assert [unit["name"] for unit in found["build"]["units"]] == ["plain"]


@pytest.mark.processes
@needs_bubblewrap
def test_the_builder_is_the_judges_own() -> None:
    with Judge("cpu4", warm=0, ahead=True) as judge:
        assert judge._ahead is not None
        assert judge._ahead.builder is judge.builder
        assert isinstance(judge.builder, Builder)


@pytest.mark.serial
@needs_bubblewrap
def test_builds_ahead_stand_still_while_calls_are_timed_and_only_then(judge: Judge) -> None:
    assert judge._ahead is not None
    beside = judge._ahead._beside
    still: dict[str, bool] = {}

    def note(stage: str, detail: dict[str, Any]) -> None:
        still[stage] = beside._still_since is not None

    for protocol in ("check", "quick"):
        still.clear()
        found = judge.score(
            problem="allreduce",
            solution=FOLDER / "allreduce_gather_and_sum.py",
            protocol=protocol,
            on_stage=note,
        )
        assert found["verdict"] == "correct"
        assert still["correctness"] == still["reporting"] == (protocol == "quick")
        assert beside._still_since is None
