"""The deadline of a call is put off while something is built inside, and ends a call that only waits."""

from __future__ import annotations

import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.harness import talk
from evaluator.harness.reports import RankReport

LIMIT_S, BUILD_S = 20.0, 100.0


class Ended(Exception):
    """The deadline has come."""


def ended_after(monkeypatch: pytest.MonkeyPatch, compiles: list[tuple[int, int]]) -> float:
    """When the wait for a rank that says nothing ends, with a compiler at work in the given spans of seconds."""
    now = 0.0

    def poll(wait_ms: float) -> list[Any]:
        nonlocal now
        now += wait_ms / 1000
        return []

    def failed(kind: str, *rest: Any) -> Exception:
        assert kind == "deadline"
        return Ended()

    monkeypatch.setattr(talk, "time", SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now))
    it: Any = talk.Talk.__new__(talk.Talk)
    it.world_size, it.reports, it._rank_of = 1, [RankReport(0)], {}
    it._poll, it._build_until, it._compiler_seen = SimpleNamespace(poll=poll), None, -talk.BETWEEN_S
    it._build_limit, it._failed = lambda: BUILD_S, failed
    it._compiles = lambda: any(first <= now < last for first, last in compiles)
    with pytest.raises(Ended):
        it._collect("done", "call", LIMIT_S)
    return now


def test_a_call_that_waits_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_after(monkeypatch, []) == pytest.approx(LIMIT_S)


def test_a_build_that_is_over_puts_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_after(monkeypatch, [(2, 9)]) == pytest.approx(LIMIT_S)


def test_a_build_goes_on_between_two_runs_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Inductor's does: neither runs at the deadline, nor at those it was put off to."""
    ended = ended_after(monkeypatch, [(12, 18), (21, 24), (26, 29)])

    assert 29 + talk.BETWEEN_S <= ended <= 29 + talk.BETWEEN_S + 5


def test_a_compiler_that_never_ends_has_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_after(monkeypatch, [(0, 10_000)]) == pytest.approx(BUILD_S)


def test_a_compiler_counts_while_it_computes() -> None:
    """One that waits for its input was taken for a build: a hang beside it had five minutes instead of its 20 s."""
    program = subprocess.run(
        ["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True
    ).stdout.strip()
    compiler = subprocess.Popen(
        [program, "-quiet", "-O2", "-o", "/dev/null", "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert compiler.stdin is not None
    it: Any = talk.Talk.__new__(talk.Talk)
    it.box, it._compiled = SimpleNamespace(pids=lambda: [compiler.pid]), {}
    try:
        until = time.monotonic() + 60.0
        while it._compiles():  # it starts
            assert time.monotonic() < until
        work = "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nconst int x = f(40);\n"
        compiler.stdin.write(work.encode())
        compiler.stdin.close()
        while not it._compiles():
            assert compiler.poll() is None
            assert time.monotonic() < until
    finally:
        compiler.kill()
        compiler.wait()


def test_assembler_and_linker_count_by_their_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files carry the machine's name in front, and the linker's its kind behind."""
    ticks, program = 0, "/usr/bin/x86_64-linux-gnu-as"
    monkeypatch.setattr(talk, "busy_ticks", lambda pid: ticks)
    monkeypatch.setattr(talk.os, "readlink", lambda path: program)
    it: Any = talk.Talk.__new__(talk.Talk)
    it.box, it._compiled = SimpleNamespace(pids=lambda: [1]), {}
    for program in ("/usr/bin/x86_64-linux-gnu-as", "/usr/bin/aarch64-linux-gnu-ld.bfd", "/usr/lib/gcc/lto1"):
        ticks += 10
        assert it._compiles(), program
    for program in ("/usr/bin/x86_64-linux-gnu-python", "/tmp/as"):
        ticks += 10
        assert not it._compiles(), program
