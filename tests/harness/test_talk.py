"""What ranks may say, and what it costs to listen."""

from __future__ import annotations

import json
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.harness import reports
from evaluator.harness.reports import JobFailed
from evaluator.harness.talk import LONG, Talk


class Heard(Talk):
    """Two ranks at the other ends of sockets, and a box that notes when it is frozen and thawed."""

    def __init__(self) -> None:
        self.log: list[str] = []
        box = SimpleNamespace(
            freeze=lambda: self.log.append("freeze"),
            thaw=lambda: self.log.append("thaw"),
            oom_killed=lambda: False,
        )
        control, self.template_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        template: Any = SimpleNamespace(box=box, control=control, target=SimpleNamespace(data={}))
        super().__init__(template, 2)
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        self.sockets, self.ranks = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
        for end in (*self.sockets, *self.ranks):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._listen()

    def say(self, rank: int, **more: Any) -> None:
        self.ranks[rank].send(json.dumps({"t": "done", "seq": 0, **more}).encode())


def test_a_rank_that_reads_nothing_cannot_make_us_wait() -> None:
    talk = Heard()

    def send_on() -> None:
        for _ in range(100_000):
            talk._send(0, {"t": "call", "pad": "x" * 1000})

    with pytest.raises(JobFailed, match="does not read what it is sent") as caught:
        send_on()
    assert caught.value.kind == "protocol"


def test_short_words_stop_nobody() -> None:
    talk = Heard()
    talk.say(0)
    talk.say(1)
    assert len(talk._collect("done", "call", 5.0)) == 2
    assert talk.log == []


def test_the_outputs_are_looked_at_before_the_last_words_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Heard()
    read = reports.read_message

    def noted(data: bytes) -> dict[str, Any]:
        talk.log.append("read")
        return read(data)

    monkeypatch.setattr("evaluator.harness.talk.read_message", noted)
    for rank in (0, 1):
        talk.say(rank)
    talk._collect("done", "call", 5.0, at_last=lambda: talk.log.append("look"))
    assert talk.log == ["look", "read", "read"]


def test_the_outputs_are_looked_at_again_when_what_came_was_not_the_last_word() -> None:
    talk = Heard()
    for rank in (0, 1):
        talk.ranks[rank].send(b'{"t": "queued"}')
        talk.say(rank)
    talk._collect("done", "call", 5.0, at_last=lambda: talk.log.append("look"))
    assert talk.log == ["look", "look"]


def test_the_job_stands_still_while_a_long_last_word_is_read_and_after() -> None:
    talk = Heard()
    talk.say(0)
    talk.say(1, claim="x" * LONG)
    talk._collect("done", "call", 5.0)
    assert talk.log[0] == "freeze"
    assert talk.log[-1] == "freeze"
    assert "thaw" not in talk.log


def test_a_long_word_that_is_not_the_last_lets_the_others_go_on_but_is_taken_apart_in_stillness() -> None:
    talk = Heard()
    talk.say(0, claim="x" * LONG)
    talk._poll.unregister(talk.sockets[1])
    got: dict[int, dict[str, Any]] = {}
    talk._take(talk.sockets[0].fileno(), "done", "call", got)
    assert talk.log == ["freeze", "thaw"]
    talk._poll.register(talk.sockets[1])
    talk.log.clear()
    talk.say(0, claim="x" * LONG)
    talk.say(1)
    talk._collect("done", "call", 5.0)
    assert talk.log[-1] == "freeze"


def test_stacks_that_the_job_reads_itself_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Heard()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    talk._stack_pipes = {reader: 0}
    monkeypatch.setattr("evaluator.harness.talk.STACKS_S", 0.2)
    monkeypatch.setattr("select.select", lambda *_: ([reader], [], []))  # something came and went
    assert talk._stacks() == {}
    os.close(reader)
    os.close(writer)
