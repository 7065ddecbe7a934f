"""No turn begins while the kernel frees what a frozen job has let go of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from evaluator.harness import lettinggo
from evaluator.harness.lettinggo import STILL, LettingGo
from evaluator.harness.sandbox import Sandbox
from evaluator.harness.sandbox.layout import host_layout

from .sandboxes import MIB, needs_bubblewrap, python_spec, wait_for


def read(*amounts: int | None) -> tuple[LettingGo, list[int | None]]:
    """What watches a job that holds these amounts, the last one from then on, and what it has seen."""
    seen: list[int | None] = []
    left: Iterator[int | None] = chain(amounts, repeat(amounts[-1]))

    def memory() -> int | None:
        seen.append(next(left))
        return seen[-1]

    return LettingGo(memory), seen


def test_the_wait_ends_when_the_memory_no_longer_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lettinggo, "CALM_S", 0.0)
    job, seen = read(100 * MIB, 80 * MIB, 50 * MIB, 50 * MIB - STILL)
    job.begin()
    job.wait()
    assert len(seen) == 4


def test_a_pause_of_the_kernels_thread_is_not_its_end() -> None:
    job, seen = read(100 * MIB, 80 * MIB, 80 * MIB, 40 * MIB)
    job.begin()
    job.wait()
    assert seen[-1] == 40 * MIB


@pytest.mark.parametrize("amounts", [(MIB, MIB), (MIB, 3 * MIB), (None, None), (MIB, None)])
def test_nobody_waits_for_a_job_that_keeps_what_it_has(amounts: tuple[int | None, ...]) -> None:
    job, seen = read(*amounts)
    job.begin()
    job.wait()
    assert len(seen) == 2


def test_a_fall_during_anothers_turn_is_noticed() -> None:
    job, _ = read(100 * MIB, 100 * MIB, 99 * MIB, 90 * MIB)
    job.begin()
    job.wait()
    assert not job.fell()
    assert job.fell()


def test_a_frozen_job_that_is_at_work_is_waited_for_and_noticed() -> None:
    used = iter([1.0, 1.004, 1.006, *[1.006] * 1000, 1.02])
    last = [0.0]

    def cpu() -> float:
        last[0] = next(used, 1.02)
        return last[0]

    job = LettingGo(lambda: None, cpu)
    job.begin()
    job.wait()
    assert last[0] == 1.006
    assert not job.fell()
    for _ in used:
        pass
    assert job.fell()


DYING = """
import mmap, os, signal, time
ready, tell = os.pipe()
shared = mmap.mmap(-1, 400 << 20)
for at in range(0, len(shared), 4096):
    shared[at] = 1
for _ in range(4):
    if os.fork() == 0:
        for at in range(0, len(shared), 4096):
            shared[at]
        os.write(tell, b"x")
        signal.setitimer(signal.ITIMER_REAL, 1)
        time.sleep(60)
for _ in range(4):
    os.read(ready, 1)
print("armed", flush=True)
time.sleep(60)
"""


@needs_bubblewrap
@pytest.mark.serial
@pytest.mark.skipif(
    "freeze=v2" not in host_layout().describe() or "cputime" not in host_layout().places,
    reason="no timer ends what the first freezer holds, and somebody must count processor time",
)
def test_processes_that_die_while_they_are_frozen_are_seen_at_work() -> None:
    """Shared pages: to unmap them takes the kernel milliseconds and frees next to nothing."""
    with Sandbox(python_spec(DYING, memory_bytes=1024 * MIB)) as box:
        assert box.stdout.readline() == b"armed\n"
        box.freeze()
        job = LettingGo(lambda: None, box.cpu_now)
        job.begin()
        wait_for(job.fell)
        job.wait()
        assert not job.fell()


CYCLE = """
import mmap, os, socket, time
handle = os.memfd_create("x")
os.ftruncate(handle, 600 << 20)
with mmap.mmap(handle, 600 << 20) as memory:
    for at in range(0, len(memory), 4096):
        memory[at] = 1
one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
socket.send_fds(one, [b"x"], [one.fileno(), two.fileno(), handle])
os.close(handle)
print("full", flush=True)
one.close()
two.close()
socket.socketpair()[0].close()  # has the kernel look for what nobody can receive
print("gone", flush=True)
time.sleep(60)
"""


@needs_bubblewrap
@pytest.mark.serial
@pytest.mark.skipif(
    not {"memory", "freeze"} <= set(host_layout().places), reason="no group counts memory and freezes"
)
def test_what_the_kernel_frees_later_is_gone_after_the_wait() -> None:
    with Sandbox(python_spec(CYCLE, memory_bytes=1024 * MIB)) as box:
        assert box.stdout.readline() == b"full\n"
        assert box.stdout.readline() == b"gone\n"
        box.freeze()
        job = LettingGo(box.memory_now)
        job.begin()
        wait_for(job.fell)  # the kernel may begin late
        job.wait()
        left = box.memory_now()
        assert left is not None
        assert left < 100 * MIB
