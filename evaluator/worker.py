"""The evaluator's worker process: registered host, warm judge, heartbeat, ticker, clean end.

It is a Celery worker of pool ``solo`` with concurrency 1, since two timed jobs must never share a
machine; a lock file sees to that across processes. ``manage.py evaluator_worker`` starts it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from evaluator import services
from evaluator.harness.errors import NoSandbox, Unfit
from evaluator.harness.sandbox import HostReport
from evaluator.models import Host
from evaluator.pulse import Pulse, Ticker
from evaluator.queues import queue_name, rhythm
from evaluator.runner import Judge, make_judge, prepare_next, run_lease, sources_folder
from portal.submissions.doorbell import ring
from problems.models import Target
from problems.registry import load_problem

log = logging.getLogger(__name__)

UNFIT = "Not fit: "
SELF_TEST_PROBLEM = "allreduce"

SelfTest = Callable[[Judge], bool]


class Worker:
    """What one worker process holds, from registration to its end."""

    def __init__(self, *, host: Host, target: str, judge: Judge, pulse: Pulse, self_test: SelfTest) -> None:
        self.host = host
        self.target = target
        self.judge = judge
        self.pulse = pulse
        self._self_test = self_test

    def drain(self) -> int:
        """Lease and judge until nothing is left or the worker must end; returns how many leases."""
        count = 0
        while not (self.pulse.shutting_down or self.pulse.superseded) and self._fit():
            lease = services.lease(host=self.host)
            if lease is None:
                break
            count += 1
            self._work(lease)
        return count

    def _fit(self) -> bool:
        """Whether the host's cards are sound and quiet; it leaves service while they are not, and says why."""
        reasons = self.judge.unfit()
        if reasons:
            log.error("this host is not fit: %s", "; ".join(reasons))
            services.quarantine(host=self.host, reason=UNFIT + "; ".join(reasons))
            return False
        services.reinstate_fit(host=self.host, reason=UNFIT)
        return True

    def _work(self, lease: services.Lease) -> None:
        self.pulse.hold(lease.token)
        try:
            prepare_next(self.judge, self.host.target_id)
            log.info("judging %s (attempt %s)", lease.submission.pk, lease.attempt_id)
            run_lease(judge=self.judge, lease=lease, watch=self.pulse)
        except Exception as fault:  # whatever it was, it was not the submission that may be blamed
            log.exception("a fault of ours while judging %s", lease.submission.pk)
            self._settle(lease, fault)
        finally:
            self.pulse.drop()

    def _settle(self, lease: services.Lease, fault: Exception) -> None:
        """Test the host: if it fails, it leaves service and the fault is not held against anyone."""
        told = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, Unfit):
            services.quarantine(host=self.host, reason=UNFIT + "; ".join(fault.reasons))
            services.fail_infra(token=lease.token, fault=told, counted=False)
            return
        healthy = self._self_test(self.judge)
        if not healthy:
            services.quarantine(host=self.host, reason=f"Self-test failed after: {fault}")
        services.fail_infra(token=lease.token, fault=told, counted=healthy)


_current: Worker | None = None


def current() -> Worker | None:
    """The worker of this process; None in web processes and plain Celery workers."""
    return _current


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the machine's evaluator lock; ImproperlyConfigured when another process holds it.

    The kernel drops the lock with the process, so a killed worker leaves none behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "evaluator.lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ImproperlyConfigured(
                "An evaluator worker is running on this machine already. Two would disturb each "
                f"other's timing; stop it first (lock: {handle.name})."
            ) from None
        handle.seek(0)
        handle.truncate()
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield


def environment(report: HostReport) -> dict[str, Any]:
    """What a host says of itself when it registers; the door asks for its isolation (`evaluator.serving`)."""
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "pid": os.getpid(),
        "isolation": {"grade": report.grade, "reasons": list(report.reasons), "fix": report.fix},
    }


def run(*, app: Celery, target: str, name: str, tick: Callable[[], None], self_test: SelfTest) -> None:
    """Run the worker until it is told to end. Returns after its lease, if any, was given back."""
    global _current
    pace = rhythm()
    with only_one(Path(settings.VAR_DIR) / "run"):
        _clean_leftovers()
        judge = make_judge(settings.PKB_JUDGE, target)
        host = services.register_host(name=name, target=target, environment=environment(judge.host))
        pulse = Pulse(host, pace)
        ticker = Ticker(pace.tick_s, tick)
        _current = Worker(host=host, target=target, judge=judge, pulse=pulse, self_test=self_test)
        try:
            if host.state == Host.State.QUARANTINED and self_test(judge):
                services.reinstate(host=host)
            tick()
            pulse.start()
            ticker.start()
            _serve(app, target, name, pulse)
        finally:
            _current = None
            ticker.end()
            pulse.end()
            judge.close()
            services.retire_host(host=host)


def _serve(app: Celery, target: str, name: str, pulse: Pulse) -> None:
    """Listen to the doorbell until SIGTERM or SIGINT."""

    def on_ready(**_: object) -> None:
        ring(target)

    def on_shutdown(**_: object) -> None:
        pulse.shut_down()

    worker_ready.connect(on_ready)
    worker_shutting_down.connect(on_shutdown)
    os.environ["CELERY_SKIP_CHECKS"] = "1"  # they would load the web's URLs and views
    # A busy solo worker answers no broker heartbeat; a dropped connection would only cost a reconnect.
    app.conf.update(broker_heartbeat=0, worker_hijack_root_logger=False)
    try:
        app.Worker(
            pool="solo",
            concurrency=1,
            prefetch_multiplier=1,
            queues=[queue_name(target)],
            hostname=f"{name}@{socket.gethostname()}",
            loglevel="INFO",
            without_mingle=True,
            without_gossip=True,
            without_heartbeat=True,
        ).start()
    finally:
        worker_ready.disconnect(on_ready)
        worker_shutting_down.disconnect(on_shutdown)


def _clean_leftovers() -> None:
    """Remove sandboxes, cgroups, shared memory and sources of a worker that died on this machine."""
    from evaluator.harness.sandbox import cleanup_leftovers

    cleanup_leftovers()
    shutil.rmtree(sources_folder())


def reference_self_test(target: str) -> SelfTest:
    """Make the self-test of a host: a reference of the catalogue must be judged correct against itself."""
    size = Target.objects.get(slug=target).cells[0]

    def test(judge: Judge) -> bool:
        try:
            path = load_problem(SELF_TEST_PROBLEM).folder / "reference.py"
            result = judge.score(problem=SELF_TEST_PROBLEM, solution=path, size=size, protocol="check")
        except NoSandbox:
            return True  # nothing may run here but samples, so there is nothing to learn
        except Exception:  # any fault at all means that the host is not fit
            log.exception("the self-test failed")
            return False
        return bool(result["verdict"] == "correct")

    return test
