"""Hostile files at full load cost their own verdict; the worker goes on with the next at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversary.catalog import FOLDER, all_entries
from tests.evaluator.world import World

pytestmark = [pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(1300)]

HOSTILE = ("v34_all_at_once", "s42_res_log_flood", "c03_endless_loop")
PLAIN = FOLDER / "honest" / "k01_allreduce_plain.py"
NEXT_WITHIN_S = 10.0
PATIENCE_S = 400


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    judge = "tests.harness.brisk.BriskJudge"
    with World(tmp_path, PKB_JUDGE=judge, PKB_HEARTBEAT_S="15", PKB_LEASE_S="45", PKB_TICK_S="30") as made:
        yield made


def test_each_costs_its_own_verdict_only(world: World) -> None:
    entries = {entry.id: entry for entry in all_entries()}
    token = world.ask("prepare")

    def send(path: Path) -> str:
        sent = world.ask(
            "post_file", token=token, path=str(path), problem="allreduce", target="cpu4", mode="check"
        )
        assert sent["status"] == 202, sent
        return str(sent["id"])

    hostile = {name: send(entries[name].path) for name in HOSTILE}
    honest = send(PLAIN)
    world.start_worker()

    looks = {}
    for name, submission in [*hostile.items(), ("honest", honest)]:
        looks[name] = world.ask("wait", id=submission, states=["done"], timeout_s=PATIENCE_S)
        assert looks[name]["state"] == "done", world.log()
    assert looks["honest"]["verdict"] == "correct", world.log()
    for name in HOSTILE:
        assert looks[name]["verdict"] in entries[name].expect, (name, looks[name])
    assert [look["attempts"] for look in looks.values()] == [["scored"]] * len(looks)
    times = [time for look in looks.values() for time in look["times"]]
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(times)]
    assert max(gaps) <= NEXT_WITHIN_S, gaps
