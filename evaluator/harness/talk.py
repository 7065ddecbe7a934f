"""What is said between the supervisor and the ranks of one job: words in, words out, and what a failure looks like.

Every message is a claim. Whoever says something that the shim never says has tampered with it.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.harness.reports import JobFailed, RankReport, own_frames, read_message, told
from evaluator.harness.sandbox import FreezeFailed
from evaluator.harness.sandbox.logs import clean_text
from evaluator.harness.sandbox.processes import busy_ticks
from evaluator.harness.warm import Template
from problems.registry import Target

BUILDERS = frozenset(
    {
        "ninja",
        "cc1plus",
        "cc1",
        "as",
        "ld",
        "ld.bfd",
        "ld.gold",
        "lto1",
        "lto1-wpa",
        "lto-wrapper",
        "collect2",
    }
    | {"nvcc", "cicc", "ptxas", "cudafe++", "nvlink", "fatbinary"}
)
"""As their files are called, without the machine's name in front (`x86_64-linux-gnu-as`)."""
_MACHINE = re.compile(r"^[\w]+(?:-[\w]+)*-gnu-")
BETWEEN_S = 10.0
"""So long after a compiler was seen a build still counts as going on: Inductor's is Python alone in between."""
GRACE_S = 1.5
STACKS_S = 1.0
STACK_BYTES = 64 * 1024
LONG = 16 * 1024
"""Bytes of a message from which on reading it takes longer than it takes to stop the job."""


class Talk:
    """The sockets of a job's ranks and its template, and what was heard so far."""

    def __init__(self, template: Template, world_size: int) -> None:
        self.template, self.world_size = template, world_size
        self.target: Target = template.target
        self.box = template.box
        self.sockets: list[socket.socket] = []
        self.reports = [RankReport(r) for r in range(world_size)]
        self._stack_pipes: dict[int, int] = {}
        self._rank_of: dict[int, int] = {}
        self._sequence = 0
        self._poll = select.poll()
        self._build_until: float | None = None
        self._compiler_seen = -BETWEEN_S
        self._compiled: dict[int, int] = {}
        self._long = False
        self._woken = 0.0
        """When the last message came in: reading it is not the ranks' time."""

    def _listen(self) -> None:
        """From here on ranks and template are heard."""
        for ours in self.sockets:
            self._poll.register(ours, select.POLLIN)
        self._poll.register(self.template.control, select.POLLIN)
        self._rank_of = {ours.fileno(): rank for rank, ours in enumerate(self.sockets)}

    def _hang_up(self) -> None:
        """Close the ranks' sockets and pipes. Idempotent."""
        for ours in self.sockets:
            ours.close()
        while self._stack_pipes:
            os.close(self._stack_pipes.popitem()[0])

    def _collect(
        self,
        wanted: str,
        phase: str,
        limit_s: float,
        should_stop: Callable[[], bool] | None = None,
        got: dict[int, dict[str, Any]] | None = None,
        spin: bool = False,
        at_last: Callable[[], None] | None = None,
    ) -> list[dict[str, Any]]:
        """One `wanted` message from every rank; `got` holds those that came already.

        Extends the limit while a compiler works inside. `spin`: look without pause, on hosts with cores to spare, since
        to be woken takes longer than what is timed may take. `at_last` is called once something came from every rank
        that is missing, before any of it is read (again should it not have been what is waited for).
        """
        deadline = time.monotonic() + limit_s
        if self._build_until is None:
            self._build_until = time.monotonic() + max(limit_s, self._build_limit())
        got = {} if got is None else got
        self._long = False
        for report in self.reports:
            if report.rank not in got:
                report.state = "waiting"
        while len(got) < self.world_size:
            left = deadline - time.monotonic()
            if left <= 0:
                deadline = self._put_off(phase, got)
                continue
            ready = self._poll.poll(0 if spin else min(left, 1.0) * 1000)
            self._woken = time.perf_counter()
            if not ready and not spin:
                self._builds()
            self._before_last(ready, got, at_last)
            for descriptor, _ in ready:
                self._take(descriptor, wanted, phase, got)
            if should_stop is not None and should_stop():
                raise InterruptedError
        if self._long:
            self._freeze(phase)  # what is in the messages takes long to read, too
        return [got[rank] for rank in range(self.world_size)]

    def _put_off(self, phase: str, got: dict[int, dict[str, Any]]) -> float:
        """A later deadline where something is built inside; JobFailed where nothing is, or for too long."""
        until = self._build_until or 0.0
        if time.monotonic() < until and self._builds():
            return min(until, time.monotonic() + 5.0)
        raise self._failed("deadline", phase, got)

    def _before_last(
        self,
        ready: list[tuple[int, int]],
        got: dict[int, dict[str, Any]],
        at_last: Callable[[], None] | None,
    ) -> None:
        """Call `at_last` where every rank that is missing is among those that said something."""
        speaking = {self._rank_of.get(descriptor) for descriptor, _ in ready}
        missing = set(range(self.world_size)) - got.keys()
        if at_last is not None and missing <= speaking:
            at_last()

    def _take(self, descriptor: int, wanted: str, phase: str, got: dict[int, dict[str, Any]]) -> None:
        """Read one message from a rank or the template and file it."""
        if descriptor == self.template.control.fileno():
            self._take_exit(phase, got)
            return
        rank = self._rank_of[descriptor]
        report = self.reports[rank]
        data = _received(self.sockets[rank])
        if not data:
            self._poll.unregister(descriptor)
            report.state = "closed"
            raise self._failed("exit", phase, got)
        if len(data) > LONG and phase == "call":
            # To read it takes a while, in which the ranks would work on unclocked.
            self._freeze(phase)
            message = read_message(data)
            self._long = True
            if message.get("t") != wanted or len(got) + 1 < self.world_size:
                self.box.thaw()
        else:
            message = read_message(data)
        self._file(rank, message, wanted, phase, got)

    def _freeze(self, phase: str) -> None:
        """Stop the job. JobFailed when it does not stop: who is to blame is for the caller to find out."""
        try:
            self.box.freeze()
        except FreezeFailed as error:
            raise self._failed("unstoppable", phase, {}, str(error)) from error

    def _file(
        self, rank: int, message: dict[str, Any], wanted: str, phase: str, got: dict[int, dict[str, Any]]
    ) -> None:
        """Take a rank's message as what is waited for, or fail."""
        report = self.reports[rank]
        kind = message.get("t")
        if kind == "error" and isinstance(message.get("message"), str):
            report.state, report.error = "error", told(message)
            raise self._failed("error", phase, got)
        if kind == "joined" != wanted and phase == "import" and report.state == "waiting":
            report.state = "joined"
            return
        if kind == "queued" and wanted == "done":
            return  # it came after its gate had been opened
        if (
            kind != wanted
            or rank in got
            or message.get("seq", 0) != (self._sequence if wanted == "done" else 0)
        ):
            raise self._failed("protocol", phase, got, "a rank sent something the shim never sends")
        report.state = wanted
        got[rank] = message

    def _take_exit(self, phase: str, got: dict[int, dict[str, Any]]) -> None:
        message = read_message(_received(self.template.control))
        if self._note_exit(message):
            raise self._failed("exit", phase, got)
        self._poll.unregister(self.template.control)
        raise self._failed("gone", phase, got, "the sandbox's first process ended")

    def _note_exit(self, message: dict[str, Any]) -> bool:
        """File a rank's exit as the template tells it; False for anything else."""
        rank, code = message.get("rank"), message.get("code")
        sound = type(code) is int and abs(code) < 256
        if message.get("t") != "exit" or not sound or type(rank) is not int:
            return False
        if not 0 <= rank < self.world_size:
            return False
        self.reports[rank].exit_code, self.reports[rank].state = code, "exited"
        return True

    def _failed(self, kind: str, phase: str, got: dict[int, dict[str, Any]], note: str = "") -> JobFailed:
        """Gather what the other ranks still say, and on a hang where each of them waits."""
        failure = JobFailed(kind, phase, self.reports, note)
        if kind in ("error", "exit", "protocol"):
            self._gather(time.monotonic() + GRACE_S)
        silent = [r for r in self.reports if not r.error and r.exit_code is None and r.rank not in got]
        if kind == "deadline" or (kind == "error" and silent):
            failure.stacks = self._stacks()
        failure.out_of_memory = self.box.oom_killed()
        return failure

    def _gather(self, until: float) -> None:
        """Take errors and exits of the remaining ranks for a short while."""
        while (left := until - time.monotonic()) > 0:
            ready = self._poll.poll(left * 1000)
            for descriptor, _ in ready:
                if descriptor == self.template.control.fileno():
                    data = _received(self.template.control)
                    self._note_exit(read_message(data))
                    if not data:
                        self._poll.unregister(descriptor)
                    continue
                self._gather_rank(descriptor)
            if all(r.error or r.exit_code is not None for r in self.reports):
                return

    def _gather_rank(self, descriptor: int) -> None:
        report = self.reports[self._rank_of[descriptor]]
        data = _received(self.sockets[report.rank])
        if not data:
            self._poll.unregister(descriptor)
            return
        message = read_message(data)
        if message.get("t") == "error" and isinstance(message.get("message"), str) and report.error is None:
            report.state, report.error = "error", told(message)

    def _stacks(self) -> dict[int, str]:
        """Each rank's Python stack as it wrote it: text, capped, never trusted."""
        try:
            self.template.control.send(b'{"t": "dump"}')
        except OSError:
            return {}
        found: dict[int, bytes] = dict.fromkeys(range(self.world_size), b"")
        pipes = dict(self._stack_pipes)
        deadline = time.monotonic() + STACKS_S
        while pipes and (left := deadline - time.monotonic()) > 0:
            if all(found.values()):
                left = min(left, 0.1)  # everybody has begun to write; take what still comes
            ready, _, _ = select.select(list(pipes), [], [], left)
            if not ready and all(found.values()):
                break
            for descriptor in ready:
                rank = pipes[descriptor]
                try:
                    chunk = os.read(descriptor, STACK_BYTES)
                except BlockingIOError:
                    continue  # the job itself took it: where it has our uid it can open its end for reading, too
                found[rank] += chunk
                if not chunk or len(found[rank]) > STACK_BYTES:
                    del pipes[descriptor]  # ended, or a flood that is no stack
        texts = {rank: own_frames(clean_text(raw[:16000])) for rank, raw in found.items()}
        return {rank: text for rank, text in texts.items() if 'File "' in text}  # others are with the shim

    def _builds(self) -> bool:
        """Whether something is built inside: a compiler is at work, or was when we looked before."""
        now = time.monotonic()
        if self._compiles():
            self._compiler_seen = now
        return now - self._compiler_seen < BETWEEN_S

    def _compiles(self) -> bool:
        """Whether a program of the host's compiler has computed since the last look.

        A mere name or a copy does not count, nor one that waits for its input.
        """
        ticks = {}
        for pid in self.box.pids():
            try:
                program = Path(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                continue
            if _MACHINE.sub("", program.name) in BUILDERS and str(program).startswith(
                ("/usr/", sys.prefix, "/opt/pkb/venv/")
            ):
                ticks[pid] = busy_ticks(pid) or 0
        known, self._compiled = self._compiled, ticks
        return any(known.get(pid, 0) < now for pid, now in ticks.items())

    def _build_limit(self) -> float:
        return float(self.target.data.get("deadlines", {}).get("build_s", 300))

    def _send(self, rank: int, message: dict[str, Any]) -> None:
        try:
            self.sockets[rank].send(json.dumps(message).encode(), socket.MSG_DONTWAIT)
        except BlockingIOError as error:
            raise self._failed(
                "protocol", "call", {}, f"rank {rank} does not read what it is sent"
            ) from error
        except OSError as error:
            self.reports[rank].state = "closed"
            raise self._failed("exit", "call", {}, f"rank {rank} closed its socket") from error


def _received(channel: socket.socket) -> bytes:
    """The next message; empty when the other side is gone, also when it left something unread."""
    try:
        return channel.recv(1 << 20)
    except ConnectionResetError:
        return b""
