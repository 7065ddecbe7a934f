"""The protocol's own cost is taken off every time: it is measured while nothing else is at work on the host."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.harness import protocol, run

QUIET = ["settled", "handshake"]


class _Job:
    """A job of which only its start is seen."""

    def __init__(self, role: str, held: bool, seen: list[str]) -> None:
        self._role, self._seen = role, seen
        seen.append(f"{role} launched{' to be held' * held}")

    def join(self, limit_s: float) -> None:
        self._seen.append(f"{self._role} joined")

    def start(self, *limits: Any) -> None:
        self._seen.append(f"{self._role} started")


@pytest.mark.parametrize(
    ("protocol_name", "order"),
    [
        ("paper", ["reference started", "submission joined", *QUIET, "alone", "submission started"]),
        ("quick", ["reference started", "submission started", *QUIET]),
        ("check", ["reference started", "submission started"]),
    ],
)
def test_neither_the_import_nor_a_template_runs_beside_the_handshake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, protocol_name: str, order: list[str]
) -> None:
    seen: list[str] = []
    session = SimpleNamespace(
        measure_handshake=lambda: seen.append("handshake"),
        reference_block=lambda: seen.append("alone"),
        timing=protocol.Timing(),
    )
    score: Any = run.Run.__new__(run.Run)
    target = SimpleNamespace(device="cpu", timed=True, data={"deadlines": {"import_s": 60}})
    score.bench = SimpleNamespace(
        target=target, settle=lambda: seen.append("settled"), start_next=lambda: None
    )
    score.cases = SimpleNamespace(answers=lambda number: [])
    score.problem = SimpleNamespace(folder=tmp_path)
    (tmp_path / "reference.py").write_text("")
    score.protocol_name, score.files, score._should_stop = protocol_name, {}, None
    monkeypatch.setattr(run, "slot_sizes", lambda *facts: (0, 0))
    monkeypatch.setattr(run.protocol, "Session", lambda *facts: cast(Any, session))
    monkeypatch.setattr(score, "stage", lambda name: None)
    monkeypatch.setattr(score, "_job", lambda role, files, sizes, held=False: _Job(role, held, seen))
    monkeypatch.setattr(score, "_measure", lambda session: None)
    score._round({}, {})
    held = " to be held" * (protocol_name == "paper")
    assert seen == ["reference launched", f"submission launched{held}", *order]
