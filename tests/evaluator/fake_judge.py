"""A judge for tests of the queue: no ranks, the same calls. What it does is written in the file it gets.

First comment line of the solution:
    # fake: VERDICT [speedup]   return that verdict
    # fake: hold PATH           say that it began by creating PATH, then work until PATH.go exists
    # fake: fault               raise JudgeFault
    # fake: nosandbox           raise NoSandbox
    # fake: unfit               raise Unfit, and be unfit from then on
    # fake: toolarge            raise SizeTooLarge
    # fake: badfile             raise BadFile
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.harness.errors import JudgeFault, NoSandbox, SizeTooLarge, Stopped, Unfit
from evaluator.harness.sandbox import HostReport
from evaluator.harness.source import BadFile
from tests.evaluator.build import result

REFUSALS: dict[str, Callable[[], Exception]] = {
    "fault": lambda: JudgeFault("a fault by order of the test"),
    "nosandbox": lambda: NoSandbox(["no bubblewrap"], "apt-get install bubblewrap"),
    "toolarge": lambda: SizeTooLarge("size large does not fit"),
    "badfile": lambda: BadFile("not a readable zip"),
}
TIMELINE = (
    b'{"call_us": 9, "kinds": {"phase": "call"}, "bars": [[0, "call", "phase", 0, 9, "call"]], "left_out": 0}'
)
STAGES = ("building", "starting", "correctness", "warmup", "timing", "reporting")


class FakeJudge:
    """Stands in for evaluator.harness.judge.Judge (setting PKB_JUDGE)."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.host = HostReport("full")
        self.closed = False
        self.reasons: list[str] = []
        self.prepared: list[tuple[str, str]] = []
        self._never = threading.Event()

    def score(
        self,
        *,
        problem: str,
        solution: Path,
        size: str,
        protocol: str,
        on_stage: Callable[[str, dict[str, Any]], None] | None = None,
        on_artifact: Callable[[str, bytes], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        noise_floor: float = 0.10,
    ) -> dict[str, Any]:
        first, _, _ = solution.read_text().partition("\n")
        words = first.removeprefix("# fake: ").split() if first.startswith("# fake: ") else ["correct"]
        for stage in STAGES:
            if on_stage is not None:
                on_stage(stage, {})
        if words[0] in REFUSALS:
            raise REFUSALS[words[0]]()
        if words[0] == "unfit":
            self.reasons = ["card 0 is slowed: hardware slowdown"]
            raise Unfit(self.reasons)
        if words[0] == "hold":
            self._hold(Path(words[1]), should_stop or (lambda: False))
            words = ["correct"]
        if protocol == "profile" and on_artifact is not None:
            on_artifact("trace.json.gz", b"a trace")
            on_artifact("timeline.json", TIMELINE)
        speedup = float(words[1]) if len(words) > 1 else 2.0
        found = result(words[0], size=size, speedup=speedup, protocol=protocol, target=self.target)
        if found["timing"]:
            found["timing"]["noise_floor"] = noise_floor
        return found

    def prepare(self, *, problem: str, solution: Path) -> bool:
        self.prepared.append((problem, solution.read_text()))
        return True

    def unfit(self) -> list[str]:
        return self.reasons

    def _hold(self, path: Path, should_stop: Callable[[], bool]) -> None:
        path.touch()
        while not Path(f"{path}.go").exists():
            if should_stop():
                raise Stopped("asked to stop")
            self._never.wait(0.02)

    def close(self) -> None:
        self.closed = True
