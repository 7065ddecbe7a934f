"""Work beside the judge that must not be at work while calls are timed.

A compiler on the host's cores disturbs the launches that a timed call consists of, on cards as on a CPU. What is built
ahead therefore stands still, its compilers frozen, from a timed score's first job to its report.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.harness.sandbox import FreezeFailed, Sandbox


class Beside:
    """Lets sandboxes work while nothing is timed. The working thread and the judge's thread share it."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._boxes: list[Sandbox] = []
        self._still_since: float | None = None
        self._stood_s = 0.0

    def stand_still(self) -> None:
        """Return once nothing here uses a core; waits for a `step` at work. Idempotent."""
        with self._turn:
            if self._still_since is None:
                self._still_since = time.monotonic()
                for box in self._boxes:
                    try:
                        box.freeze()
                    except FreezeFailed:
                        box.kill()  # whoever reads from it finds its end

    def go_on(self) -> None:
        """Let everything go on where it stood. Idempotent."""
        with self._turn:
            if self._still_since is not None:
                self._stood_s += time.monotonic() - self._still_since
                self._still_since = None
                for box in self._boxes:
                    if box.alive():
                        box.thaw()
                self._turn.notify_all()

    def clock(self) -> float:
        """Seconds that stop while everything stands still: what a limit of the work is measured by."""
        with self._turn:
            return (self._still_since or time.monotonic()) - self._stood_s

    @contextmanager
    def step(self) -> Iterator[None]:
        """A short piece of work that is not stopped in the middle, begun when it may be."""
        with self._turn:
            self._turn.wait_for(lambda: self._still_since is None)
            yield

    @contextmanager
    def at_work(self, box: Sandbox) -> Iterator[None]:
        """Start a sandbox when it may be, and have it stand still with everything else while the block runs."""
        with self.step():
            box.start()
            self._boxes.append(box)
        try:
            yield
        finally:
            with self._turn:
                self._boxes.remove(box)
