"""Builds beside the judge stand still while calls are timed: the rule alone, then with a real compiler."""

from __future__ import annotations

import threading
from typing import cast

from evaluator.harness.beside import Beside
from evaluator.harness.samples import FOLDER
from evaluator.harness.sandbox import FreezeFailed, Sandbox

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
