"""One job in its sandbox, from start to the last trace removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO

from . import names
from .births import Birth
from .cgroup import JobCgroup
from .command import Command
from .errors import KillFailed, SandboxError
from .freezer import Freezer, make_freezer
from .layout import Layout, host_layout
from .logs import CappedLog
from .processes import descendants, ended, wait_until_gone
from .spawner import spawn
from .spec import SandboxSpec, UsageReport
from .uids import UidLease

KILL_LIMIT_S = 10.0


class Sandbox:
    """A job of one principal: its processes share a uid and may look at each other, and at nobody else.

    Not started twice. ``start`` and ``kill`` may be called from any thread; ``freeze`` and ``thaw`` from one
    thread at a time. A supervisor that dies takes the job with it, frozen or not, unless it was frozen by a v1
    freezer or was just being started; then ``cleanup_leftovers`` of the next worker does.
    """

    def __init__(self, spec: SandboxSpec, layout: Layout | None = None) -> None:
        """``layout`` None takes what this host offers."""
        self.spec = spec
        host = names.clean(spec.host_id) if spec.host_id else names.default_host_id()
        lease = names.clean(spec.lease) if spec.lease else names.own_lease()
        self.name = names.job_name(host, lease, spec.name)
        self._lease_folder = names.hold_lease(host, lease)
        self._birth = Birth(self._lease_folder, self.name)
        self._group = JobCgroup(self.name, host_layout() if layout is None else layout)
        self._uid: UidLease | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._freezer: Freezer | None = None
        self._usage: UsageReport | None = None
        self._guard = threading.Lock()

    @property
    def folder(self) -> Path:
        """A folder on the host for this job's files (bind it with ``ro_binds``); ``kill`` removes it."""
        folder = self._lease_folder / self.name
        folder.mkdir(mode=0o755, exist_ok=True)
        return folder

    @property
    def uid(self) -> int | None:
        """The job's uid on the host; None before the start and for a plain user's supervisor."""
        return self._uid.uid if self._uid else None

    @property
    def pid(self) -> int:
        """Host pid of the outermost process (bubblewrap)."""
        return self._started().pid

    @property
    def stdout(self) -> IO[bytes]:
        """The read end of the job's standard output."""
        stream = self._started().stdout
        assert stream is not None
        return stream

    @property
    def stderr(self) -> IO[bytes]:
        """The read end of the job's standard error."""
        stream = self._started().stderr
        assert stream is not None
        return stream

    @property
    def returncode(self) -> int | None:
        """None while it runs; then the exit code of the command, 128+n or -n for a signal n."""
        return self._process.poll() if self._process else None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise SandboxError("the sandbox was not started")
        return self._process

    def start(self) -> None:
        """Spawn the job, already inside its groups. On SpawnFailed nothing stays behind."""
        if self._process is not None or self._usage is not None:
            raise SandboxError("a sandbox is started once")
        try:
            if os.geteuid() == 0:
                self._uid = UidLease()
            self._group.create(self.spec)
            self._birth.open()
            command = Command(self.spec, self.uid, self._group.procs_files(), self._birth)
            try:
                self._freezer = make_freezer(self._group, self.pids)
                self._process = spawn(command.argv, command.pass_fds)
            finally:
                command.close()
                self._birth.close()
        except BaseException:
            self.kill()
            raise

    def freeze(self) -> float:
        """Stop every process of the job; seconds it took. Idempotent. FreezeFailed after 5 s."""
        return self._live_freezer().freeze()

    def thaw(self) -> float:
        """Let the job go on; seconds it took. Idempotent."""
        return self._live_freezer().thaw()

    def _live_freezer(self) -> Freezer:
        if self._freezer is None:
            raise SandboxError("the sandbox is not running")
        return self._freezer

    def pids(self) -> list[int]:
        """Host pids of the job's processes, bubblewrap's own two included."""
        if self._process is None or self._usage is not None:
            return []
        if self._group.folders():
            return self._group.pids()
        if self._process.poll() is not None:
            return []
        return descendants(self._process.pid)

    def alive(self) -> bool:
        """Whether the command still runs."""
        return self._process is not None and self._process.poll() is None

    def usage(self) -> UsageReport:
        """What the job used so far, or in all once it was killed."""
        return self._usage or self._group.usage()

    def cpu_now(self) -> float | None:
        """Processor seconds that the job has used; None where no group counts them."""
        return self._group.cpu_now()

    def memory_now(self) -> int | None:
        """Bytes that the job holds at the moment; None where no group counts them."""
        return self._group.memory_now()

    def oom_killed(self) -> bool:
        """Whether the kernel killed a process of the job because of the memory limit."""
        return self.usage().oom_kills > 0

    def kill(self) -> UsageReport:
        """End every process, wait for that, remove every trace. Idempotent. KillFailed when 10 s bring none down."""
        with self._guard:
            if self._usage is None:
                self._end_processes()
                usage = self._group.usage()
                self._close()
                self._group.remove()
                self._birth.remove()
                shutil.rmtree(self._lease_folder / self.name, ignore_errors=True)
                if self._uid:
                    self._uid.release()
                self._usage = usage
            return self._usage

    def _end_processes(self) -> None:
        process = self._process
        if process is None:
            return
        below = descendants(process.pid)[1:]
        # Bubblewrap's only child is the namespace's first process: once that has ended, so has everything in it.
        with ended(below[:1], KILL_LIMIT_S):
            # First the outermost process, so that a job that has not yet entered its groups never enters them.
            # The namespace's first process dies with it, and the kernel ends the namespace with that.
            process.kill()
            self._group.kill(KILL_LIMIT_S)
            try:
                process.wait(KILL_LIMIT_S)
            except subprocess.TimeoutExpired as error:
                raise KillFailed(f"{self.name}: bubblewrap did not end") from error
            # Again: it may have entered, and forked, between the two steps above.
            self._group.kill(KILL_LIMIT_S)
            if not self._group.folders():
                wait_until_gone(below, KILL_LIMIT_S)

    def _close(self) -> None:
        if self._freezer is not None:
            self._freezer.close()
            self._freezer = None

    def collect(self, log: CappedLog, prefix: str = "") -> None:
        """Hand standard output and error over to ``log``, as ``<prefix>stdout`` and ``<prefix>stderr``."""
        log.add(f"{prefix}stdout", self.stdout.fileno())
        log.add(f"{prefix}stderr", self.stderr.fileno())
        self.close_streams()

    def communicate(self, limit_s: float) -> tuple[bytes, bytes]:
        """Standard output and error, whole, of a job that we wrote ourselves.

        subprocess.TimeoutExpired after ``limit_s``. For a stranger's job use CappedLog: this keeps everything.
        """
        return self._started().communicate(timeout=limit_s)

    def close_streams(self) -> None:
        """Close our ends of the output pipes; for callers that did not hand them to a log collector."""
        if self._process is not None:
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.close_streams()
