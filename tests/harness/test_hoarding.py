"""Who leaves the machine's one pool of TCP memory full is told so; who finds it full is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.harness.errors import JudgeFault
from evaluator.harness.judge import Judge
from evaluator.harness.sandbox import tcpmemory
from problems.registry import load_problem

pytestmark = [pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(300)]
FEW_PAGES = 1000
HOARDER = """
import socket
import torch
import torch.distributed as dist

kept = []


def hoard():
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    for _ in range(30):
        one = socket.create_connection(server.getsockname())
        one.setblocking(False)
        kept.extend([one, server.accept()[0]])
        try:
            while True:
                one.send(bytes(1 << 16))
        except BlockingIOError:
            pass


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    if not kept:
        hoard()
    return out
"""


def test_full_buffers_are_found_where_no_group_limits_them(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tcpmemory, "_first_mark", lambda: FEW_PAGES)
    file = tmp_path / "solution.py"
    file.write_text(HOARDER)
    found = judge.score(problem="allreduce", solution=file, protocol="check")
    assert found["code"] == "rejected.background"
    assert "unread bytes" in found["message"]


def test_a_pool_that_others_keep_full_is_not_the_files_fault(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcpmemory, "crowded", lambda: True)
    monkeypatch.setattr("evaluator.harness.protocol.FREED_S", 0.1)
    with pytest.raises(JudgeFault, match="TCP"):
        judge.score(
            problem="allreduce", solution=load_problem("allreduce").folder / "reference.py", protocol="check"
        )
