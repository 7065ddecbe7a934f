"""Turns: a frozen job does nothing, and a killed one is gone, whatever it tried."""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from evaluator.harness.sandbox import Sandbox, SandboxError
from evaluator.harness.sandbox.layout import Layout

from .sandboxes import alive, layouts, needs_bubblewrap, python_spec, traces, wait_for

pytestmark = [needs_bubblewrap, pytest.mark.serial]

SLOTS = 4
COUNT = """
import mmap, os, struct, sys
handle, slots, escape = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
shared = mmap.mmap(handle, 4096)
slot = 0
for number in range(1, slots):
    if os.fork() == 0:
        slot = number
        if escape == "daemon":
            os.setsid()
            if os.fork():
                os._exit(0)
            os.setsid()
        break
value = 0
while True:
    value += 1
    struct.pack_into("=Q", shared, 8 * slot, value)
"""


class Counters:
    """Memory shared with a job, in which each of its processes counts."""

    def __init__(self) -> None:
        self.handle = os.memfd_create("counters")
        os.ftruncate(self.handle, 4096)
        self._memory = mmap.mmap(self.handle, 4096)

    def read(self) -> tuple[int, ...]:
        """All counters."""
        return struct.unpack_from(f"={SLOTS}Q", self._memory, 0)

    def all_move(self, since: tuple[int, ...]) -> bool:
        """Whether every process has counted on since then."""
        return all(now > then for now, then in zip(self.read(), since, strict=True))

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        os.close(self.handle)


@pytest.fixture
def counters() -> Iterator[Counters]:
    shared = Counters()
    yield shared
    shared.close()


def counting(counters: Counters, layout: Layout | None = None, escape: str = "no") -> Sandbox:
    """A started job of four processes that count."""
    arguments = (str(counters.handle), str(SLOTS), escape)
    box = Sandbox(python_spec(COUNT, *arguments, pass_fds=(counters.handle,), name="count"), layout)
    box.start()
    wait_for(lambda: all(counters.read()))
    return box


def finish(box: Sandbox) -> None:
    """Kill, and show that nothing of the job is left."""
    pids = box.pids()
    assert len(pids) >= SLOTS
    box.kill()
    box.close_streams()
    assert [pid for pid in pids if alive(pid)] == []
    assert traces(box.name) == []
    assert not box.alive()


@pytest.mark.parametrize("kind", layouts())
def test_frozen_job_makes_no_progress(kind: str, counters: Counters) -> None:
    box = counting(counters, layouts()[kind])
    try:
        for _ in range(20):
            assert box.freeze() < 5
            stopped = counters.read()
            time.sleep(0.01)
            assert counters.read() == stopped
            box.thaw()
            wait_for(lambda then=stopped: counters.all_move(then))  # type: ignore[misc]
    finally:
        finish(box)


@pytest.mark.parametrize("kind", layouts())
def test_freeze_and_thaw_can_be_repeated(kind: str, counters: Counters) -> None:
    box = counting(counters, layouts()[kind])
    try:
        box.thaw()
        box.freeze()
        stopped = counters.read()
        box.freeze()
        assert counters.read() == stopped
        box.thaw()
        box.thaw()
        wait_for(lambda: counters.all_move(stopped))
    finally:
        finish(box)


@pytest.mark.parametrize("kind", layouts())
def test_frozen_job_can_be_killed(kind: str, counters: Counters) -> None:
    box = counting(counters, layouts()[kind])
    box.freeze()
    start = time.monotonic()
    finish(box)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("kind", layouts())
def test_daemons_stop_and_die_with_the_job(kind: str, counters: Counters) -> None:
    box = counting(counters, layouts()[kind], escape="daemon")
    box.freeze()
    stopped = counters.read()
    time.sleep(0.02)
    assert counters.read() == stopped
    box.thaw()
    finish(box)
    ended = counters.read()
    time.sleep(0.05)
    assert counters.read() == ended


@pytest.mark.parametrize("kind", layouts())
@pytest.mark.parametrize("delay_ms", [0, 1, 2, 4, 8, 16, 32])
def test_kill_during_the_start_leaves_nothing(kind: str, delay_ms: int, counters: Counters) -> None:
    arguments = (str(counters.handle), str(SLOTS), "no")
    spec = python_spec(COUNT, *arguments, pass_fds=(counters.handle,), name="early")
    box = Sandbox(spec, layouts()[kind])
    box.start()
    time.sleep(delay_ms / 1000)
    pids = box.pids()
    box.kill()
    box.close_streams()
    assert [pid for pid in pids if alive(pid)] == []
    assert traces(box.name) == []
    ended = counters.read()
    time.sleep(0.05)
    assert counters.read() == ended


def test_freeze_during_the_start_holds(counters: Counters) -> None:
    """A job that is frozen before it entered its groups stops as it enters."""
    arguments = (str(counters.handle), str(SLOTS), "no")
    box = Sandbox(python_spec(COUNT, *arguments, pass_fds=(counters.handle,), name="cold"))
    box.start()
    try:
        box.freeze()
        time.sleep(0.3)
        assert counters.read() == (0,) * SLOTS
        box.thaw()
        wait_for(lambda: all(counters.read()))
    finally:
        box.kill()
        box.close_streams()


def test_other_job_runs_while_one_is_frozen(counters: Counters) -> None:
    other = Counters()
    one, two = counting(counters), counting(other)
    try:
        one.freeze()
        stopped, then = counters.read(), other.read()
        wait_for(lambda: other.all_move(then))
        assert counters.read() == stopped
    finally:
        finish(one)
        finish(two)
        other.close()


def test_job_outlives_the_thread_that_started_it(counters: Counters) -> None:
    """The parent's death signal belongs to a thread: it must not be the one that called start."""
    started: list[Sandbox] = []
    thread = threading.Thread(target=lambda: started.append(counting(counters)))
    thread.start()
    thread.join()
    box = started[0]
    then = counters.read()
    time.sleep(0.1)
    try:
        wait_for(lambda: counters.all_move(then))
    finally:
        finish(box)


def test_kill_twice_gives_the_same_report(counters: Counters) -> None:
    box = counting(counters)
    first = box.kill()
    assert box.kill() is first
    assert box.usage() is first
    assert box.pids() == []
    with pytest.raises(SandboxError, match="once"):
        box.start()
    box.close_streams()


@pytest.mark.parametrize("kind", layouts())
def test_freezing_what_has_ended_is_no_fault(kind: str) -> None:
    with Sandbox(python_spec("pass"), layouts()[kind]) as box:
        box.communicate(30)
        assert box.freeze() < 5
        box.thaw()
    with pytest.raises(SandboxError, match="not running"):
        box.freeze()


def test_return_code_is_the_command_s() -> None:
    with Sandbox(python_spec("raise SystemExit(7)")) as box:
        box.communicate(30)
        assert box.returncode == 7
    with Sandbox(python_spec("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")) as box:
        box.communicate(30)
        assert box.returncode == 128 + 11
