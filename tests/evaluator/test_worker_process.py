"""Real worker processes on a real database and broker: lost rings, kills, shutdowns."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.evaluator.world import World

pytestmark = [pytest.mark.serial, pytest.mark.timeout(180)]


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


BROKERS = [
    pytest.param("filesystem", id="filesystem"),
    pytest.param("redis", id="redis", marks=pytest.mark.redis),
]
if listening(5672):  # RabbitMQ is tried where one runs; nothing here starts it
    BROKERS.append(pytest.param("amqp://guest:guest@127.0.0.1:5672//", id="rabbitmq"))


@contextmanager
def broker_url(kind: str) -> Iterator[str]:
    """URL of a broker; a Redis of the test's own is started and ended."""
    if kind != "redis":
        yield "filesystem://" if kind == "filesystem" else kind
        return
    port = next(port for port in range(7400, 7500) if not listening(port))
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        pause = threading.Event()
        for _ in range(200):
            if listening(port):
                break
            pause.wait(0.05)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


@pytest.mark.parametrize("broker", BROKERS)
def test_a_ring_wakes_the_worker_and_a_kill_costs_one_try(tmp_path: Path, broker: str) -> None:
    with broker_url(broker) as url, World(tmp_path, broker=url) as world:
        worker = world.start_worker()
        first = world.ask("submit", text="# fake: correct\n")
        seen = world.ask("wait", id=first, states=["done"], timeout_s=40)
        assert seen["verdict"] == "correct", world.log()
        # Idle now: the next ring must wake it well before the ticker of a real installation would.
        quick = world.ask(
            "wait", id=world.ask("submit", text="# fake: correct\n"), states=["done"], timeout_s=10
        )
        assert quick["state"] == "done", world.log()

        began = tmp_path / "began"
        held = world.ask("submit", text=f"# fake: hold {began}\n")
        world.until(began)
        world.kill(worker)
        assert world.ask("look", id=held)["state"] == "running"
        left = list(world.sources.iterdir())
        assert left
        began.unlink()
        world.start_worker()  # the same host again: its lease comes back at once
        world.until(began)
        assert not set(left) & set(world.sources.iterdir())
        Path(f"{began}.go").touch()
        seen = world.ask("wait", id=held, states=["done"], timeout_s=60, scores=1)
        assert (seen["state"], seen["verdict"]) == ("done", "correct"), world.log()
        assert seen["attempts"] == ["lease_lost", "scored"]
        assert seen["scores"] == 1


def test_another_host_takes_over_after_the_lease(world: World) -> None:
    began = world.folder / "began"
    worker = world.start_worker("host-a")
    held = world.ask("submit", text=f"# fake: hold {began}\n")
    world.until(began)
    world.kill(worker)
    Path(f"{began}.go").touch()
    world.start_worker("host-b")
    seen = world.ask("wait", id=held, states=["done"], timeout_s=60, scores=1)
    assert seen["attempts"] == ["lease_lost", "scored"], world.log()
    assert seen["scores"] == 1


def test_a_lost_ring_costs_one_tick(world: World) -> None:
    world.start_worker()
    done = world.ask("wait", id=world.ask("submit", text="# fake: correct\n"), states=["done"], timeout_s=40)
    assert done["state"] == "done", world.log()
    silent = world.ask("submit", text="# fake: correct\n", rings=False)
    assert world.ask("wait", id=silent, states=["done"], timeout_s=15)["state"] == "done", world.log()


def test_heartbeats_go_on_while_the_judge_works_and_cancel_is_seen(world: World) -> None:
    began = world.folder / "began"
    world.start_worker()
    held = world.ask("submit", text=f"# fake: hold {began}\n")
    world.until(began)
    # Longer than the lease of 3 s: without heartbeats the ticker would take it back.
    seen = world.ask("wait", id=held, states=["queued", "done"], timeout_s=5)
    assert seen["state"] == "running", world.log()
    assert seen["heartbeats"][0] > 3
    world.ask("cancel", id=held)
    after = world.ask("submit", text="# fake: correct\n")
    assert world.ask("wait", id=after, states=["done"], timeout_s=15)["state"] == "done", world.log()
    seen = world.ask("look", id=held)
    assert (seen["state"], seen["attempts"], seen["scores"]) == ("cancelled", ["cancelled"], 0)


def test_sigterm_gives_the_lease_back_and_ends_cleanly(world: World) -> None:
    began = world.folder / "began"
    worker = world.start_worker()
    held = world.ask("submit", text=f"# fake: hold {began}\n")
    world.until(began)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0, world.log()
    seen = world.ask("look", id=held)
    assert (seen["state"], seen["attempts"]) == ("queued", ["released"])
    assert world.ask("hosts")[0]["stopped"]


def test_two_workers_never_share_a_machine(world: World) -> None:
    world.start_worker("host-a")
    done = world.ask("wait", id=world.ask("submit", text="# fake: correct\n"), states=["done"], timeout_s=40)
    assert done["state"] == "done", world.log()
    second = world.start_worker("host-b")
    assert second.wait(30) == 1
    assert "running on this machine already" in world.log()


def test_an_unknown_target_is_said_plainly(world: World) -> None:
    worker = world.start_worker(target="abacus")
    assert worker.wait(30) == 1
    assert "There is no target 'abacus'" in world.log()
