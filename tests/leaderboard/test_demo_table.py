"""What the demo prints at its end says what the board says; where its children keep what is theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.samples import Sample
from leaderboard import demo, services
from leaderboard.models import Score
from tests.evaluator import build
from tests.leaderboard.test_boards import board, scored


def job(result: dict[str, Any], expected: str = "correct") -> demo.Job:
    sample = Sample("a.py", "allreduce", expected, "a model", "about it")
    return demo.Job(sample, "1", "/", reused=False, state="done", verdict=result["verdict"], result=result)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("speedup", "floor", "flags", "tie"),
    [
        (1.05, 0.1, [], True),
        (1.05, 0.02, [], False),
        (0.95, None, [], True),
        (0.5, 0.1, [], False),
        (3.0, 0.1, ["below_resolution"], True),
    ],
)
def test_it_says_tie_where_the_board_does(
    speedup: float, floor: float | None, flags: list[str], tie: bool
) -> None:
    result = build.result(speedup=speedup, flags=flags)
    result["timing"]["noise_floor"] = floor
    services.record_score(attempt=scored(result))
    Score.objects.update(provisional=False)
    (row,) = board().rows
    assert row.tied is tie
    table = demo.table([job(result)])
    assert ("x tie " in table) is tie
    assert ("x tie (too short)" in table) is ("below_resolution" in flags)
    assert (demo.TIE in table) is tie


def test_its_last_line_counts_what_ended_as_expected() -> None:
    jobs = [job(build.result()), job(build.result("incorrect"), "incorrect"), job(build.result(), "timeout")]
    assert demo.table(jobs).splitlines()[-1] == "2 of 3 ended as expected."


@pytest.mark.parametrize(
    ("user", "chosen", "folder"),
    [(1000, None, "var/run"), (1000, "/elsewhere", "/elsewhere"), (0, None, None)],
)
def test_a_plain_users_demo_keeps_its_leases_in_its_own_folder(
    monkeypatch: pytest.MonkeyPatch, user: int, chosen: str | None, folder: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.delenv("PKB_RUN_DIR", raising=False)
    if chosen:
        monkeypatch.setenv("PKB_RUN_DIR", chosen)
    assert demo.environment(Path("var")).get("PKB_RUN_DIR") == folder
