"""A file through the API, the queue, a real worker with the real judge, to the board; and kills."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.samples import FOLDER
from tests.evaluator.processes import alive, descendants
from tests.evaluator.world import World

pytestmark = [pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(1300)]

FASTER = FOLDER / "allreduce_gather_and_sum.py"
WRONG = FOLDER / "allreduce_without_communication.py"
PATIENCE_S = 400  # on a machine that does other things too; alone it takes seconds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    judge = "evaluator.harness.judge.Judge"
    with World(tmp_path, PKB_JUDGE=judge, PKB_HEARTBEAT_S="15", PKB_LEASE_S="45", PKB_TICK_S="30") as made:
        yield made


def until_on_board(world: World) -> dict[str, Any]:
    """The board of allreduce as soon as it has a row, or as it is when patience ends."""
    pause = threading.Event()
    end = time.monotonic() + PATIENCE_S
    while True:
        board: dict[str, Any] = world.ask("get", path="/boards/cpu4/allreduce.json")["body"]
        if board["rows"] or time.monotonic() > end:
            return board
        pause.wait(0.5)


def test_a_file_reaches_the_board(world: World) -> None:
    token = world.ask("prepare")
    world.start_worker()
    sent = world.ask("post_file", token=token, path=str(FASTER), problem="allreduce", target="cpu4")
    assert sent["status"] == 202
    assert sent["location"].endswith(f"/api/v1/submissions/{sent['id']}/")
    wrong = world.ask("post_file", token=token, path=str(WRONG), problem="allreduce", target="cpu4")
    seen = world.ask("wait", id=sent["id"], states=["done"], timeout_s=PATIENCE_S, scores=1)
    assert seen["verdict"] == "correct", world.log()

    result = world.ask("get", path=f"/api/v1/submissions/{sent['id']}/result/", token=token)["body"]
    timing = result["timing"]
    assert timing["speedup_low"] <= timing["speedup"] <= timing["speedup_high"]
    assert result["protocol"] == "paper"
    assert timing["pairs"] >= 10
    assert "unranked_protocol" not in result["flags"]

    board = until_on_board(world)  # a new best is measured once more before it takes its place
    assert [row["submission_id"] for row in board["rows"]] == [sent["id"]]
    row = board["rows"][0]
    assert (row["entrant"], row["place"]) == ("ada", 1)
    assert row["speedup_low"] <= row["speedup"] <= row["speedup_high"]
    assert row["isolation_grade"] == result["isolation_grade"]

    seen = world.ask("wait", id=wrong["id"], states=["done"], timeout_s=PATIENCE_S, scores=1)
    assert seen["verdict"] == "incorrect", world.log()
    assert len(world.ask("get", path="/boards/cpu4/allreduce.json")["body"]["rows"]) == 1


def test_a_kill_in_the_middle_leaves_one_result_and_no_process(world: World) -> None:
    token = world.ask("prepare")
    worker = world.start_worker()
    slow = world.folder / "slow.py"
    slow.write_text(f"import time\n\ntime.sleep(3)\n{FASTER.read_text()}")
    sent = world.ask(
        "post_file", token=token, path=str(slow), problem="allreduce", target="cpu4", mode="check"
    )
    assert world.ask("wait", id=sent["id"], states=["running"], timeout_s=PATIENCE_S)["state"] == "running"
    family = descendants(worker.pid)
    assert len(family) >= 8, "two jobs of four ranks were expected"
    world.kill(worker)
    world.start_worker()
    seen = world.ask("wait", id=sent["id"], states=["done"], timeout_s=PATIENCE_S)
    assert (seen["verdict"], seen["attempts"]) == ("correct", ["lease_lost", "scored"]), world.log()
    pause = threading.Event()
    for _ in range(100):
        if not alive(family):
            break
        pause.wait(0.1)
    assert alive(family) == set()
