"""What a job may use, and that using more costs nobody but the job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evaluator.harness.sandbox import KillFailed, Sandbox, SandboxSpec, SpawnFailed, cgroup, rounds, tcpmemory
from evaluator.harness.sandbox.layout import host_layout
from evaluator.harness.sandbox.names import job_name

from .sandboxes import MIB, layouts, needs_bubblewrap, python_spec, run_inside, traces

pytestmark = [needs_bubblewrap, pytest.mark.serial]


def needs(purpose: str) -> pytest.MarkDecorator:
    """Skip where this host has no such controller (a plain user's machine)."""
    return pytest.mark.skipif(
        purpose not in host_layout().places, reason=f"no writable {purpose} cgroup here"
    )


FILL = """
import os, sys
folder, done = sys.argv[1], 0
handle = os.open(folder + "/big", os.O_CREAT | os.O_WRONLY)
try:
    while True:
        done += os.write(handle, bytes(1 << 16))
except OSError as error:
    print(done, error.strerror)
"""


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/home/rank"])
def test_writable_places_are_capped(folder: str) -> None:
    code, out, err = run_inside(FILL, folder, tmp_bytes=8 * MIB, shm_bytes=8 * MIB, home_bytes=8 * MIB)
    assert (code, err) == (0, "")
    assert out == f"{8 * MIB} No space left on device\n"


def test_writable_places_are_fresh_for_each_job() -> None:
    plant = "for folder in ('/tmp', '/dev/shm', '/home/rank'): open(folder + '/planted', 'w').write('x')"
    look = "import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'), os.listdir('/home/rank'))"
    assert run_inside(plant)[0] == 0
    assert run_inside(look)[1] == "[] [] []\n"


@needs("pids")
def test_processes_are_capped_and_it_is_reported() -> None:
    code = """
import os, signal
made = []
try:
    while len(made) < 200:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        made.append(pid)
except OSError as error:
    print(len(made), error.strerror, flush=True)
"""
    with Sandbox(python_spec(code, pids_max=24)) as box:
        line = box.stdout.readline().decode()
        usage = box.kill()
    # Two of the 24 are bubblewrap's and one is the interpreter.
    assert line == "21 Resource temporarily unavailable\n"
    assert usage.pids_peak_hit


@needs("memory")
def test_memory_limit_kills_and_is_reported() -> None:
    code = "blocks = [bytearray(b'x' * (8 << 20)) for _ in range(1000)]"
    with Sandbox(python_spec(code, memory_bytes=96 * MIB)) as box:
        box.communicate(60)
        assert box.oom_killed()
        usage = box.kill()
    assert box.returncode not in (0, None)
    assert usage.oom_kills >= 1
    assert usage.max_memory_bytes is not None
    assert 64 * MIB < usage.max_memory_bytes <= 96 * MIB


@needs("memory")
def test_shared_memory_counts_as_memory() -> None:
    with Sandbox(python_spec(FILL, "/dev/shm", memory_bytes=64 * MIB, shm_bytes=512 * MIB)) as box:
        box.communicate(60)
        assert box.oom_killed()


@needs("memory")
def test_honest_job_is_no_memory_case() -> None:
    with Sandbox(python_spec("x = bytearray(32 << 20)", memory_bytes=256 * MIB)) as box:
        box.communicate(60)
        usage = box.kill()
    assert not box.oom_killed()
    assert not usage.pids_peak_hit
    assert usage.max_memory_bytes is not None
    assert usage.max_memory_bytes > 32 * MIB
    assert usage.cpu_seconds is not None
    assert 0 < usage.cpu_seconds < 10


@needs("cpu")
def test_cpu_quota_holds() -> None:
    with Sandbox(python_spec("while True: pass", cpu_cores=0.2)) as box:
        with pytest.raises(subprocess.TimeoutExpired):
            box.communicate(2.0)
        usage = box.kill()
    assert usage.cpu_seconds is not None
    assert usage.cpu_seconds < 0.2 * 2.0 + 0.3


CAPPED = {kind: layout for kind, layout in layouts().items() if "pids" in layout.places}


@needs("pids")
@pytest.mark.parametrize("kind", CAPPED)
def test_fork_bomb_ends_with_the_job(kind: str) -> None:
    code = """
import os
print(1, flush=True)
while True:
    try: os.fork()
    except OSError: pass
"""
    box = Sandbox(python_spec(code, pids_max=64, name="bomb"), CAPPED[kind])
    with box:
        box.stdout.readline()
        usage = box.kill()
        assert box.pids() == []
    assert usage.cpu_seconds is not None
    assert traces(box.name) == []


@needs("memory")
def test_a_limit_the_kernel_refuses_leaves_nothing_behind() -> None:
    box = Sandbox(python_spec("pass", memory_bytes=-5))
    with pytest.raises(SpawnFailed, match="cgroup"):
        box.start()
    assert traces(box.name) == []


class Clock:
    """A clock that runs six seconds on at every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 6.0
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


NOBODY = (1 << 22) + 1
"""Pids from here on do not exist: above the kernel's largest."""


def test_a_slow_end_of_many_is_waited_for_as_long_as_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([*(list(range(NOBODY, NOBODY + count)) for count in range(9, 0, -1)), []])
    monkeypatch.setattr(cgroup, "members", lambda folders: next(left))
    monkeypatch.setattr(rounds, "time", Clock())

    cgroup.kill_members([], 10.0)

    assert next(left, None) is None


def test_an_end_that_does_not_come_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroup, "members", lambda folders: [NOBODY])
    monkeypatch.setattr(rounds, "time", Clock())

    with pytest.raises(KillFailed, match=r"still there after 10 s"):
        cgroup.kill_members([tmp_path], 10.0)


@needs("cpu")
def test_the_dying_get_the_processor() -> None:
    group = cgroup.JobCgroup(job_name("test", "p1-0", "hurry"), host_layout())
    group.create(SandboxSpec(argv=["true"]))
    try:
        group.kill(1.0)
        folder = group.folder("cpu")
        assert folder is not None
        name, most = ("cpu.weight", 10000) if group.version("cpu") == 2 else ("cpu.shares", 262144)
        assert int((folder / name).read_text()) == most
    finally:
        group.remove()


HOARD = """
import socket
server = socket.create_server(("127.0.0.1", 0), backlog=64)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
held = []
for _ in range(30):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    one.connect(server.getsockname())
    one.setblocking(False)
    held += [one, server.accept()[0]]
    try:
        while True:
            one.send(bytes(1 << 16))
    except BlockingIOError:
        pass
print("full", flush=True)
server.accept()
"""


@needs("memory")
def test_unread_bytes_of_connections_are_counted_and_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie in one pool of the whole machine: who fills it makes everybody's connections slow."""
    if (place := host_layout().places["memory"]).version == 2:
        pytest.skip("groups of v2 count them as memory")
    monkeypatch.setattr(tcpmemory, "share", lambda: 4 * MIB)
    with Sandbox(python_spec(HOARD)) as box:
        assert box.stdout.readline() == b"full\n"
        held = int((place.base / box.name / "memory.kmem.tcp.usage_in_bytes").read_text())
    assert MIB < held < 8 * MIB


def test_all_jobs_together_stay_below_the_first_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marks, held = tmp_path / "tcp_mem", tmp_path / "sockstat"
    marks.write_text("1000\t2000\t3000\n")
    held.write_text("sockets: used 5\nTCP: inuse 1 orphan 0 tw 58 alloc 67 mem 1000\nUDP: inuse 0 mem 9999\n")
    monkeypatch.setattr(tcpmemory, "_MARKS", marks)
    monkeypatch.setattr(tcpmemory, "_HELD", held)
    assert tcpmemory.share() == 500 * 4096
    assert not tcpmemory.crowded()
    held.write_text("TCP: inuse 1 orphan 0 tw 58 alloc 67 mem 1001\n")
    assert tcpmemory.crowded()
    marks.unlink()
    assert tcpmemory.share() is None
    assert not tcpmemory.crowded()


def test_a_job_is_the_first_to_go_when_the_machine_runs_out_of_memory() -> None:
    """Buffers of sockets count for no process: the kernel would else end the largest one, the supervisor maybe."""
    code, out, _ = run_inside("print(open('/proc/self/oom_score_adj').read())")
    assert (code, out.strip()) == (0, "1000")


def _may_set_limits() -> bool:
    """Whether we have CAP_SYS_RESOURCE, by which the kernel keeps a job from lowering what we set."""
    words = Path("/proc/self/status").read_text().split()
    return bool(int(words[words.index("CapEff:") + 1], 16) >> 24 & 1)


@pytest.mark.skipif(not _may_set_limits(), reason="needs CAP_SYS_RESOURCE")
def test_a_job_cannot_leave_the_front_of_that_queue() -> None:
    code = """
try:
    with open('/proc/self/oom_score_adj', 'w') as file:
        file.write('0')
except OSError:
    pass
print(open('/proc/self/oom_score_adj').read())
"""
    assert run_inside(code)[1].strip() == "1000"


def test_a_kernel_that_no_longer_limits_sockets_starts_jobs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "memory.kmem.tcp.limit_in_bytes").mkdir()  # what is there and cannot be written
    cgroup.JobCgroup("job", host_layout())._limit_sockets(tmp_path)
