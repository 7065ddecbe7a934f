"""The threads beside the judge: one keeps the lease alive and watches it, one ticks for the queue."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable

from django.db import DatabaseError, connections

from evaluator import services
from evaluator.models import Host
from evaluator.queues import Rhythm

log = logging.getLogger(__name__)


class _Thread(threading.Thread, ABC):
    """A daemon thread that calls ``beat`` at an interval, with a database connection of its own."""

    def __init__(self, name: str, interval_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self._interval_s = interval_s
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            while not self._ended.wait(self._interval_s):
                try:
                    self.beat()
                except DatabaseError:
                    log.exception("%s could not reach the database; it tries again", self.name)
                    connections.close_all()
        finally:
            connections.close_all()

    @abstractmethod
    def beat(self) -> None:
        """What is done once per interval."""

    def end(self) -> None:
        """Stop and wait for the thread, so that its connection is closed."""
        self._ended.set()
        if self.is_alive():
            self.join(timeout=10)


class Pulse(_Thread):
    """Heartbeat of the host and of its lease; says when the work under the lease must stop.

    It must stop when the lease is gone, the author cancelled, the host was registered by somebody
    else, the worker shuts down, or no heartbeat got through for the length of a lease.
    """

    def __init__(self, host: Host, rhythm: Rhythm) -> None:
        super().__init__("pulse", min(rhythm.watch_s, rhythm.heartbeat_s))
        self._host = host
        self._rhythm = rhythm
        self._token: uuid.UUID | None = None
        self._unwanted = threading.Event()
        self._shutdown = threading.Event()
        self._superseded = threading.Event()
        self._last_beat = time.monotonic()

    @property
    def shutting_down(self) -> bool:
        """Whether the worker was asked to end."""
        return self._shutdown.is_set()

    @property
    def superseded(self) -> bool:
        """Whether another process has registered under this host's name."""
        return self._superseded.is_set()

    def shut_down(self) -> None:
        """Ask the work to stop because the worker ends; safe in a signal handler."""
        self._shutdown.set()

    def hold(self, token: uuid.UUID) -> None:
        """Start to keep a lease alive."""
        self._unwanted.clear()
        self._last_beat = time.monotonic()
        self._token = token

    def drop(self) -> None:
        """The lease has ended."""
        self._token = None

    def should_stop(self) -> bool:
        """Asked by the judge between calls; costs no query."""
        silent_s = time.monotonic() - self._last_beat
        return (
            self._unwanted.is_set()
            or self._shutdown.is_set()
            or self._superseded.is_set()
            or (self._token is not None and silent_s > self._rhythm.lease_s)
        )

    def beat(self) -> None:
        token = self._token
        if token is not None and not services.wanted(token=token):
            self._unwanted.set()
        if time.monotonic() - self._last_beat < self._rhythm.heartbeat_s:
            return
        if not services.seen(host=self._host):
            self._superseded.set()
        if token is not None and not services.heartbeat(token=token):
            self._unwanted.set()
        self._last_beat = time.monotonic()


class Ticker(_Thread):
    """Every 30 s: take back silent leases, tell boards what they missed, ring for what waits."""

    def __init__(self, interval_s: float, tick: Callable[[], None]) -> None:
        super().__init__("ticker", interval_s)
        self._tick = tick

    def beat(self) -> None:
        self._tick()
