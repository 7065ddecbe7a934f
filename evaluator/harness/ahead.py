"""Builds ahead: what waits in the queue is compiled while another file is scored: cards never wait for a compiler.

Only for targets with cards: on a CPU target the compiler would take the cores that are measured. A thread of its own
records and compiles, in sandboxes as everywhere; what comes out lies in the build cache when the file's turn comes.
Never while calls are timed: from a timed score's first job to its report everything here stands still.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from evaluator.harness.beside import Beside
from evaluator.harness.builds import Builder, BuildFailed, content_key
from evaluator.harness.errors import Stopped
from evaluator.harness.job import Job
from evaluator.harness.reports import JobFailed
from evaluator.harness.warm import Template
from problems.registry import Problem, Target

log = logging.getLogger(__name__)

BUILD_WORDS = (b"cpp_extension", b"cuda_helpers", b"load_inline")
RECORD_SLOT = 4 << 20
KEEP = 32


def builds_something(files: dict[str, bytes]) -> bool:
    """Whether a file may build extensions at import."""
    return any(word in files["solution.py"] for word in BUILD_WORDS)


def record(
    template: Template,
    problem: Problem,
    files: dict[str, bytes],
    should_stop: Callable[[], bool] | None = None,
) -> tuple[list[Any], str]:
    """The builds that the file asks for at import, and what ended the import, if anything. Ends the template.

    Raises JobFailed when the rank did not get to an end, InterruptedError when it should stop.
    """
    recorder = Job(template, problem, "recorder", files, 0, RECORD_SLOT, record=True)
    try:
        return recorder.recorded_units(float(template.target.data["deadlines"]["first_call_s"]), should_stop)
    finally:
        recorder.close()


def recorded(
    template: Template,
    problem: Problem,
    files: dict[str, bytes],
    should_stop: Callable[[], bool] | None = None,
) -> list[Any]:
    """The builds alone; none where recording failed: that is no verdict, the ranks will say what is wrong."""
    try:
        return record(template, problem, files, should_stop)[0]
    except JobFailed:
        return []


class Ahead:
    """Takes files that wait and builds them one after the other. All methods are for the judge's thread."""

    def __init__(self, target: Target, builder: Builder) -> None:
        self.target, self.builder = target, builder
        self._waiting: queue.SimpleQueue[tuple[str, Problem, dict[str, bytes]] | None] = queue.SimpleQueue()
        self._units: OrderedDict[str, list[Any]] = OrderedDict()
        self._known: OrderedDict[str, threading.Event] = OrderedDict()
        self._closing = threading.Event()
        self._beside = Beside()
        self._thread = threading.Thread(target=self._serve, name="builds-ahead", daemon=True)
        self._thread.start()

    def offer(self, problem: Problem, files: dict[str, bytes]) -> bool:
        """Have a file built; False when it builds nothing or is known already."""
        key = content_key(files)
        if not builds_something(files) or key in self._known:
            return False
        self._known[key] = threading.Event()
        while len(self._known) > KEEP:
            self._known.popitem(last=False)
        self._waiting.put((key, problem, files))
        return True

    def take(self, files: dict[str, bytes], limit_s: float) -> list[Any] | None:
        """The recorded builds of a file whose turn has come; None unless it was offered and is done in time."""
        key = content_key(files)
        done = self._known.get(key)
        if done is None or not done.wait(limit_s):
            return None
        return self._units.get(key)

    def stand_still(self) -> None:
        """Return once nothing here uses a core, until `go_on`. Waits for a file that is being imported."""
        self._beside.stand_still()

    def go_on(self) -> None:
        """Work again, where it was."""
        self._beside.go_on()

    def close(self) -> None:
        """Stop; a build at work is given up."""
        self._closing.set()
        self.go_on()
        self._waiting.put(None)
        self._thread.join(30)

    def _serve(self) -> None:
        while (item := self._waiting.get()) is not None and not self._closing.is_set():
            key, problem, files = item
            try:
                self._units[key] = self._build(problem, files)
            except Exception as error:  # noqa: BLE001 (what one file asks for must not end the builds of all others)
                log.warning("a build ahead did not work: %r", error)  # the lane will try it again, and tell
            finally:
                while len(self._units) > KEEP:
                    self._units.popitem(last=False)
                if (done := self._known.get(key)) is not None:
                    done.set()

    def _build(self, problem: Problem, files: dict[str, bytes]) -> list[Any]:
        limit_s = float(self.target.data["deadlines"]["build_s"])
        with self._beside.step():
            units = self._recorded(problem, files)
        try:
            self.builder.build(units, limit_s, self._closing.is_set, self._beside, files=files)
        except BuildFailed:
            pass  # found again, and told, when the file's turn comes
        except Stopped:
            return []
        return units

    def _recorded(self, problem: Problem, files: dict[str, bytes]) -> list[Any]:
        template = Template(self.target, "ahead")
        try:
            template.wait()
            return recorded(template, problem, files)
        finally:
            template.close()
