"""Jobs that no group lists and that outlived their supervisor: the next worker still finds all of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.sandbox import births, cleanup_leftovers, names
from evaluator.harness.sandbox.births import SUFFIX
from evaluator.harness.sandbox.command import _ENTER
from evaluator.harness.sandbox.processes import firsts_of_namespaces, start_ticks, state

from .sandboxes import alive, needs_bubblewrap, needs_root, processes_with, traces, wait_for

pytestmark = pytest.mark.serial

HOST = "orphans-test"
CHECKOUT = Path(__file__).resolve().parents[2]

# A supervisor of a job without groups. "forsaken" takes away what makes the job die with it; "stuck" holds the job up
# before it becomes bubblewrap, "unheard" within bubblewrap, where it has forked and can't yet tell.
SUPERVISOR = """
import json, os, signal, sys
from pathlib import Path
from tests.harness.sandboxes import python_spec
from evaluator.harness.sandbox import Sandbox, command, names
from evaluator.harness.sandbox.cgroup import JobCgroup
from evaluator.harness.sandbox.layout import Layout
how, extra = sys.argv[1].split(","), sys.argv[2]
if "forsaken" in how:
    whole = command._identity_options
    command._UNTIL_DEATH = ("--pdeathsig", "clear")
    command._identity_options = lambda uid: [word for word in whole(uid) if word != "--die-with-parent"]
if "stuck" in how:
    JobCgroup.procs_files = lambda self: [extra]
code = "import os, time\\nos.fork()\\nprint(1, flush=True)\\nwhile True: time.sleep(1)  # " + extra
box = Sandbox(python_spec(code, name="orphan", host_id="orphans-test"), Layout({}))
if "unheard" in how:
    def unheard():
        opened()
        reader, box._birth.handle = os.pipe()
        os.set_blocking(box._birth.handle, False)
        try:
            while True: os.write(box._birth.handle, bytes(1))
        except BlockingIOError:
            os.set_blocking(box._birth.handle, True)
    opened, box._birth.open = box._birth.open, unheard
told = {"name": box.name, "lease": names.own_lease()}
if "early" in how:
    print(json.dumps(told), flush=True)
box.start()
while "unheard" in how and len(box.pids()) < 2: pass
if not {"early", "stuck", "unheard"} & set(how):
    box.stdout.readline(); box.stdout.readline()
print(json.dumps({**told, "pids": box.pids()}), flush=True)
signal.pause()
"""

# The same without a sandbox. Its "template" leaves a child, an orphan in its session that has given up its
# environment, and one in another session.
PLAIN_SUPERVISOR = """
import json, os, signal, socket, sys
from evaluator.harness.plainbox import PlainBox
from evaluator.harness.sandbox import names
code = '''
import os, sys, time
last = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
if os.fork() == 0:
    for apart in (False, True):
        if os.fork() == 0:
            if apart: os.setsid()
            else: os.execve(sys.executable, [sys.executable, "-c", last], {"none": "left"})
            break
    else:
        os._exit(0)
else:
    os.wait()
    os.fork()
exec(last)
'''
box = PlainBox("orphan")
(box.folder / "rank").mkdir()
(box.folder / "rank" / "template.py").write_text(code)
ours, theirs = socket.socketpair()
box.start(theirs.fileno(), {"PATH": "/usr/bin:/bin"})
pids = [int(box.stdout.readline()) for _ in range(4)]
told = {"name": box.name, "lease": names.own_lease(), "pids": pids, "folder": str(box.folder)}
print(json.dumps(told), flush=True)
if sys.argv[1] == "kill":
    box.kill()
    print(flush=True)
signal.pause()
"""


@contextmanager
def supervisor(code: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A real supervising process with one job; all that is left of them is removed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "PKB_HOST_ID": HOST},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    job: dict[str, Any] = {}
    try:
        job.update(json.loads(process.stdout.readline()))
        yield process, job
    finally:
        end(process)
        process.stdout.close()
        for pid in job.get("pids", []):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        cleanup_leftovers(HOST)


def end(process: subprocess.Popen[str]) -> None:
    """SIGKILL, and gone."""
    process.kill()
    process.wait()


def living(pids: list[int]) -> list[int]:
    """Those of ``pids`` that live."""
    return [pid for pid in pids if alive(pid)]


def record(job: dict[str, Any]) -> Path:
    """Where the job's processes are written down."""
    return names.lease_folder(HOST, job["lease"]) / f"{job['name']}{SUFFIX}"


@needs_bubblewrap
@pytest.mark.parametrize(
    ("lost", "outermost"),
    [
        pytest.param(None, "lives", id="whole"),
        pytest.param("outermost", "ended", id="known by bubblewrap's word alone"),
        pytest.param("child-pid", "lives", id="known by the outermost process alone"),
    ],
)
def test_a_job_that_outlives_its_supervisor_is_ended_by_the_next_worker(
    lost: str | None, outermost: str
) -> None:
    """Each thing that is known of a job suffices by itself."""
    with supervisor(SUPERVISOR, "forsaken", "") as (process, job):
        end(process)
        text = record(job).read_text()
        assert {"outermost", "child-pid"} <= set(text.replace('"', " ").replace(":", " ").split())
        if lost is not None:
            record(job).write_text(text.replace(lost, "lost"))
        if outermost == "ended":
            os.kill(job["pids"][0], signal.SIGKILL)
            wait_for(lambda: not alive(job["pids"][0]))
        left = living(job["pids"])
        assert len(left) == (4 if outermost == "lives" else 3)

        removed = cleanup_leftovers(HOST)

        assert living(job["pids"]) == []
        assert {f"process {pid} of {job['name']}" for pid in left} <= set(removed)
        assert traces(job["lease"]) == []
        assert cleanup_leftovers(HOST) == []


@needs_bubblewrap
def test_numbers_of_another_boot_or_namespace_are_not_ours() -> None:
    with supervisor(SUPERVISOR, "forsaken", "") as (process, job):
        end(process)
        lines = record(job).read_text().splitlines(True)
        record(job).write_text("here another-boot pid:[1]\n" + "".join(lines[1:]))
        cleanup_leftovers(HOST)
        assert len(living(job["pids"])) == 4


@needs_bubblewrap
@pytest.mark.parametrize("which", ["outermost", "first"])
def test_numbers_that_were_given_away_again_are_not_ours(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of long ago whose number belongs to a job that lives."""
    with supervisor(SUPERVISOR, "forsaken", "") as (process, job):
        end(process)
        here = record(job).read_text().splitlines(True)[0]
        (first,) = firsts_of_namespaces(job["pids"])
        pid = first if which == "first" else job["pids"][0]
        start = start_ticks(pid)
        assert start is not None
        stat = f"{pid} (sh) S" + " 0" * 18 + f" {start - 2} "
        told = f'"child-pid": {pid}' if which == "first" else f"outermost {stat}"
        if which == "first":
            monkeypatch.setattr(births, "_SOON", 1)
        record(job).write_text(f"{here}since {start - 2}\n{told}\n")
        cleanup_leftovers(HOST)
        assert len(living(job["pids"])) == 4


def children(pid: int) -> list[int]:
    """The children of a process's first thread."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_process_that_has_let_go_of_its_memory_has_one_empty_word_for_an_environment() -> None:
    """So what dies is told from what may not be read, whatever the kernel answers."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert births._environment(process.pid) == [b""]

    process.wait()
    assert births._environment(process.pid) == []


@needs_bubblewrap
@needs_root
@pytest.mark.parametrize("how", ["orderly", "forsaken"])
def test_cleanup_returns_when_the_last_process_has_ended(how: str) -> None:
    """Here the namespace can't end before we let a process in it be reaped.

    Its first process dies before the cleanup looks, or is killed by it, and then only what was seen of it before
    tells that it belongs to the job: it has a session of its own, no environment and no parent of the job any more.
    """
    with supervisor(SUPERVISOR, how, "") as (process, job):
        (first,) = firsts_of_namespaces(job["pids"])
        guest = subprocess.Popen(["nsenter", "--target", str(first), "--pid", "sleep", "600"])
        cleaning = threading.Thread(target=cleanup_leftovers, args=(HOST,))
        try:
            wait_for(lambda: children(guest.pid))
            guest.send_signal(signal.SIGSTOP)
            wait_for(lambda: state(guest.pid) == "T")  # from now on it does not reap its child
            end(process)
            if how == "orderly":
                wait_for(lambda: living(job["pids"]) == [first])
            else:
                record(job).write_text(record(job).read_text().replace("child-pid", "lost"))
            cleaning.start()
            wait_for(lambda: living(job["pids"]) == [first])
            cleaning.join(0.5)
            assert cleaning.is_alive()
            assert alive(first)
        finally:
            guest.send_signal(signal.SIGCONT)
            guest.wait(10)
            cleaning.join(10)
        assert not cleaning.is_alive()
        assert not alive(first)


@needs_bubblewrap
def test_a_job_that_is_not_yet_bubblewrap_dies_with_its_supervisor(tmp_path: Path) -> None:
    """By the kernel alone, held up where it enters its groups."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with supervisor(SUPERVISOR, "stuck", str(gate)) as (process, job):
        (pid,) = job["pids"]
        wait_for(lambda: Path(f"/proc/{pid}/comm").read_text() == "sh\n")
        end(process)
        wait_for(lambda: not alive(pid))


def test_a_job_whose_supervisor_died_before_its_first_step_goes_no_further() -> None:
    def said(parent: int) -> tuple[int, str]:
        words = ["sh", "-c", _ENTER, "sandbox", str(parent), "/dev/null", "0", "echo", "went on"]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout

    assert said(os.getpid()) == (0, "went on\n")
    assert said(os.getppid()) == (1, "")


@needs_bubblewrap
def test_what_bubblewrap_forked_before_it_could_tell_is_ended_by_the_next_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its parent dies with the supervisor; itself it has not yet asked for that, and waits for good."""
    with supervisor(SUPERVISOR, "unheard", "") as (process, job):
        outermost, fork = job["pids"]
        end(process)
        wait_for(lambda: not alive(outermost))
        monkeypatch.setattr(births, "start_ticks", lambda pid: None)  # reaped, too, whenever init does that

        cleanup_leftovers(HOST)

        assert not alive(fork)
        assert traces(job["lease"]) == []


@needs_bubblewrap
@pytest.mark.parametrize("delay_ms", [0, 1, 2, 4, 6, 8, 11, 16, 32])
def test_sigkill_of_the_supervisor_during_the_start_leaves_nothing(delay_ms: int) -> None:
    token = f"token-{os.getpid()}-{delay_ms}"
    with supervisor(SUPERVISOR, "early", token) as (process, job):
        time.sleep(delay_ms / 1000)
        end(process)

        def cleaned() -> bool:
            cleanup_leftovers(HOST)
            # What was being forked held the lease, too, until its exec; then it finds its parent gone and ends.
            return traces(job["lease"]) == [] and processes_with(token) == []

        wait_for(cleaned)


def test_a_job_without_a_sandbox_is_ended_by_the_next_worker() -> None:
    with supervisor(PLAIN_SUPERVISOR, "wait") as (process, job):
        assert cleanup_leftovers(HOST) == []
        end(process)
        assert len(living(job["pids"])) == 4

        removed = cleanup_leftovers(HOST)

        assert living(job["pids"]) == []
        assert {job["folder"], *(f"process {pid} of {job['name']}" for pid in job["pids"])} <= set(removed)
        assert traces(job["lease"]) == []


def test_kill_ends_all_of_a_job_without_a_sandbox() -> None:
    with supervisor(PLAIN_SUPERVISOR, "kill") as (process, job):
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        assert living(job["pids"]) == []
        assert traces(job["name"]) == []
