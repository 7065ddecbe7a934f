"""A supervisor that dies takes its jobs with it; what it could not take, the next one removes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.sandbox import Sandbox, cleanup_leftovers, own_lease
from evaluator.harness.sandbox.layout import host_layout
from evaluator.harness.sandbox.processes import state

from .sandboxes import alive, layouts, needs_bubblewrap, needs_root, python_spec, traces, wait_for

pytestmark = [needs_bubblewrap, pytest.mark.serial]

HOST = "cleanup-test"
CHECKOUT = Path(__file__).resolve().parents[2]

SUPERVISOR = """
import json, sys, signal
from pathlib import Path
from tests.harness.sandboxes import layouts, python_spec
from evaluator.harness.sandbox import Sandbox, own_lease
kind, frozen = sys.argv[1], sys.argv[2] == "frozen"
code = "import os, time; os.fork(); print(1, flush=True)\\nwhile True: pass"
box = Sandbox(python_spec(code, name="orphan", host_id="cleanup-test"), layouts()[kind])
(box.folder / "file").write_text("x")
box.start()
box.stdout.readline(); box.stdout.readline()
if frozen:
    box.freeze()
print(json.dumps({"name": box.name, "pids": box.pids(), "lease": own_lease()}), flush=True)
signal.pause()
"""


@contextmanager
def supervisor(kind: str, state: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A real supervising process with one job; killed at the end if it still lives."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, kind, state], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def none_lives(pids: list[int]) -> bool:
    """Whether all are gone."""
    return not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("state", ["running", "frozen"])
def test_sigkill_of_the_supervisor_ends_the_job(state: str) -> None:
    """By the kernel alone: nobody cleans up here. Needs the v2 freezer, or signals, for the frozen case."""
    if state == "frozen" and "freeze" in (places := host_layout().places) and places["freeze"].version == 1:
        pytest.skip("a v1-frozen job dies only when the next worker thaws it")
    with supervisor("host", state) as (process, job):
        assert len(job["pids"]) == 4
        process.send_signal(signal.SIGKILL)
        wait_for(lambda: none_lives(job["pids"]))
    assert traces(job["lease"])  # its folder and, where there are any, its groups
    assert any(job["lease"] in line for line in cleanup_leftovers(HOST))
    assert traces(job["lease"]) == []


@pytest.mark.parametrize("kind", layouts())
def test_next_worker_removes_everything(kind: str) -> None:
    with supervisor(kind, "frozen") as (process, job):
        process.send_signal(signal.SIGKILL)
        process.wait()
        removed = cleanup_leftovers(HOST)
        assert none_lives(job["pids"])  # now, not soon
    assert any(job["lease"] in line for line in removed)
    assert traces(job["lease"]) == []
    assert cleanup_leftovers(HOST) == []


def test_living_supervisor_is_left_alone() -> None:
    with supervisor("host", "running") as (_, job):
        assert cleanup_leftovers(HOST) == []
        assert all(alive(pid) for pid in job["pids"])
    cleanup_leftovers(HOST)


def test_living_supervisor_is_known_from_another_run_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with supervisor("host", "running") as (_, job):
        with monkeypatch.context() as patch:
            patch.setenv("PKB_RUN_DIR", str(tmp_path))
            assert cleanup_leftovers(HOST) == []
        assert all(alive(pid) for pid in job["pids"])
    cleanup_leftovers(HOST)


def test_own_jobs_and_other_hosts_are_left_alone() -> None:
    with supervisor("host", "running") as (process, job):
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Sandbox(python_spec("import time; time.sleep(60)", host_id=HOST)) as box:
            cleanup_leftovers("another-host")
            assert traces(job["name"])
            cleanup_leftovers(HOST)
            assert box.alive()
    assert traces(job["lease"]) == []


def test_shared_memory_of_a_dead_lease_goes() -> None:
    dead = Path(f"/dev/shm/pkb.{HOST}.p1-0.slot-1")
    live = Path(f"/dev/shm/pkb.{HOST}.{own_lease()}.slot-1")
    try:
        dead.write_bytes(b"x")
        live.write_bytes(b"x")
        assert cleanup_leftovers(HOST) == [str(dead)]
        assert live.exists()
    finally:
        dead.unlink(missing_ok=True)
        live.unlink(missing_ok=True)


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    link = Path(f"/dev/shm/pkb.{HOST}.p1-0.link")
    link.symlink_to(tmp_path)
    assert cleanup_leftovers(HOST) == [str(link)]
    assert (tmp_path / "precious").exists()


def test_ordinary_end_of_a_supervisor_leaves_no_folder() -> None:
    code = (
        "from evaluator.harness.sandbox import *\n"
        "box = Sandbox(SandboxSpec(argv=['/usr/bin/env', 'true'], host_id='cleanup-test'))\n"
        "print(box.folder)\n"
        "box.start(); box.communicate(30); box.kill()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    folder = Path(done.stdout.strip())
    assert folder.parent.name.startswith(f"pkb.{HOST}.p")
    assert not folder.parent.exists()


def children(pid: int) -> list[int]:
    """The children of a process's first thread."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@needs_root
def test_a_job_has_ended_when_its_kill_returns() -> None:
    """Not only left its groups: here its namespace can't end before we let a process in it be reaped."""
    box = Sandbox(python_spec("import time; print(1, flush=True); time.sleep(600)"))
    box.start()
    box.stdout.readline()
    (first,) = children(box.pid)
    guest = subprocess.Popen(["nsenter", "--target", str(first), "--pid", "sleep", "600"])
    killing = threading.Thread(target=box.kill)
    try:
        wait_for(lambda: children(guest.pid))
        guest.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(guest.pid) == "T")  # from now on it does not reap its child
        killing.start()
        wait_for(lambda: not box.pids())
        killing.join(0.5)
        assert killing.is_alive()
        assert alive(first)
    finally:
        guest.send_signal(signal.SIGCONT)
        guest.wait(10)
        killing.join(10)
        box.close_streams()
    assert not killing.is_alive()
    assert not alive(first)


@needs_root
def test_uid_of_a_dead_supervisor_is_free_again_only_without_processes() -> None:
    with supervisor("host", "running") as (process, job):
        uids = {os.stat(f"/proc/{pid}").st_uid for pid in job["pids"]} - {0}
        with Sandbox(python_spec("import time; time.sleep(60)")) as box:
            assert box.uid not in uids
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: none_lives(job["pids"]))
    cleanup_leftovers(HOST)
    with Sandbox(python_spec("import time; time.sleep(60)")) as box:
        assert box.uid is not None
