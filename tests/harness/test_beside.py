"""Builds beside the judge stand still while calls are timed: the rule alone, then with a real compiler."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from evaluator.harness.beside import Beside
from evaluator.harness.judge import Judge
from evaluator.harness.samples import FOLDER
from evaluator.harness.sandbox import FreezeFailed, Sandbox
from tests.evaluator.processes import descendants
from tests.harness.sandboxes import needs_bubblewrap, wait_for

PLAIN = FOLDER / "allreduce_gather_and_sum.py"


class Box:
    """Notes what is done to it."""

    def __init__(self, *, stops: bool = True) -> None:
        self.stops = stops
        self.did: list[str] = []

    def start(self) -> None:
        self.did.append("start")

    def freeze(self) -> None:
        if not self.stops:
            raise FreezeFailed("not frozen after 5 s")
        self.did.append("freeze")

    def thaw(self) -> None:
        self.did.append("thaw")

    def kill(self) -> None:
        self.did.append("kill")

    def alive(self) -> bool:
        return "kill" not in self.did


def sandbox(box: Box) -> Sandbox:
    return cast(Sandbox, box)


def test_what_is_at_work_stands_still_and_goes_on() -> None:
    beside, box = Beside(), Box()
    with beside.at_work(sandbox(box)):
        beside.stand_still()
        beside.stand_still()
        beside.go_on()
        beside.go_on()
    beside.stand_still()

    assert box.did == ["start", "freeze", "thaw"]


def test_what_cannot_be_stopped_is_ended() -> None:
    beside, box = Beside(), Box(stops=False)
    with beside.at_work(sandbox(box)):
        beside.stand_still()
        beside.go_on()

    assert box.did == ["start", "kill"]


def test_nothing_begins_while_everything_stands_still() -> None:
    beside, box, began = Beside(), Box(), threading.Event()

    def work() -> None:
        with beside.step():
            began.set()
        with beside.at_work(sandbox(box)):
            pass

    beside.stand_still()
    thread = threading.Thread(target=work)
    thread.start()
    assert not began.wait(0.2)
    assert box.did == []
    beside.go_on()
    thread.join(10)
    assert began.is_set()
    assert box.did == ["start"]


def test_a_step_that_has_begun_is_waited_for() -> None:
    beside, stopped = Beside(), threading.Event()
    thread = threading.Thread(target=lambda: (beside.stand_still(), stopped.set()))
    with beside.step():
        thread.start()
        assert not stopped.wait(0.2)
    thread.join(10)
    assert stopped.is_set()


def test_its_clock_stops_with_it() -> None:
    beside = Beside()
    before = beside.clock()
    beside.stand_still()
    stood = beside.clock()
    threading.Event().wait(0.2)
    assert beside.clock() == stood
    beside.go_on()
    assert beside.clock() - before < 0.1


# Some seconds of work for the compiler, in few bytes.
SLOW = """
constexpr unsigned spin(unsigned n) { unsigned s = 1; while (n--) s = s * 1664525u + 1013904223u; return s; }
static_assert(spin(ROUNDSu) != 0);
extern "C" unsigned spun() { return spin(3); }
"""
BUILDS = """
import torch.distributed as dist
from torch.utils.cpp_extension import load

open("/tmp/slow.cpp", "w").write({text!r})
load("slow", ["/tmp/slow.cpp"], is_python_module=False, extra_cflags={flags!r})


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


@pytest.fixture
def building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Judge, Path]]:
    """A judge that compiles a file ahead right now, for some seconds yet, and the file."""
    monkeypatch.setenv("PKB_BUILD_CACHE", str(tmp_path / "cache"))
    flags = ["-fconstexpr-loop-limit=2000000000", "-fconstexpr-ops-limit=2000000000"]
    path = tmp_path / "slow.py"
    path.write_text(BUILDS.format(text=SLOW.replace("ROUNDS", str(ROUNDS)), flags=flags))
    with Judge("cpu4", ahead=True) as judge:
        assert judge.prepare(problem="allreduce", solution=path)
        wait_for(compilers, 60)
        yield judge, path


ROUNDS = 800_000


def compilers() -> dict[int, int]:
    """CPU ticks that each C++ compiler below this process has used, by pid."""
    found = {}
    for pid, _ in descendants(os.getpid()):
        try:
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            if name.endswith("(cc1plus"):
                found[pid] = sum(map(int, rest.split()[11:13]))
        except OSError:
            continue
    return found


@pytest.mark.serial
@pytest.mark.slow
@needs_bubblewrap
def test_no_compiler_runs_while_calls_are_timed(building: tuple[Judge, Path]) -> None:
    judge, path = building
    used: dict[str, dict[int, int]] = {}

    def tell(stage: str, detail: dict[str, Any]) -> None:
        used[stage] = compilers()

    timed = judge.score(problem="allreduce", solution=PLAIN, protocol="quick", on_stage=tell)
    assert timed["verdict"] == "correct"
    assert used["starting"], "the compiler had ended before anything was timed"
    assert used["starting"] == used["timing"] == used["reporting"]

    found = judge.score(problem="allreduce", solution=path, protocol="check")
    assert (found["verdict"], found["build"]["cached"]) == ("correct", True), found["message"]
