"""Score entries of the suite through one Judge and hold each against its manifest line."""

from __future__ import annotations

import os
import runpy
import secrets
import socket
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from evaluator.harness import run as harness_run
from evaluator.harness.job import Job
from evaluator.harness.judge import Judge
from problems.registry import load_problem
from tests.adversary.catalog import FOLDER, Entry
from tests.adversary.clauses import ALWAYS, CHECKOUT, CLAUSES, Evidence, Seen, start_time
from tests.adversary.pages import Portal

SINK_PORT = 31999
NEIGHBOUR = FOLDER / "honest" / "k01_allreduce_plain.py"
LAYERS = {
    "correct": "nothing gained: clock and baseline are outside",
    "incorrect": "every call compared, values never seen before",
    "contract_error.input_modified": "inputs looked at after the call",
    "contract_error": "claims compared with the reference's",
    "rejected.late_write": "second look after the freeze",
    "rejected.protocol": "framing of the rank's messages",
    "runtime_error": "an exit or error before the last call",
    "timeout": "deadline of the supervisor",
    "out_of_memory": "memory limit of the job",
    "build_error": "build before the clock",
    "upload_refused": "the door",
}


@dataclass
class Outcome:
    """What became of one entry; `broken` is empty when it ended as the manifest demands."""

    entry: Entry
    verdict: str
    code: str
    message: str = ""
    seconds: float = 0.0
    speedup_low: float | None = None
    broken: list[str] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def layer(self) -> str:
        return LAYERS.get(self.code) or LAYERS.get(self.verdict, "?")

    def row(self) -> str:
        """One line of the table."""
        state = "ok" if not self.broken else "BROKEN"
        low = "" if self.speedup_low is None else f"{self.speedup_low:.2f}x"
        text = f"{self.entry.id:38} {self.entry.family:17} {self.verdict:15} {self.code:38} {low:7}"
        text += f" {self.layer:48} {self.seconds:5.1f} s {state}"
        return "\n".join([text, *(f"    {line}" for line in self.broken)])


def _sink() -> socket.socket:
    """A listener on the host's loopback; beside another suite's it takes the next free port."""
    for port in range(SINK_PORT, SINK_PORT + 50):
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise OSError(f"no free port from {SINK_PORT} on")


class Arena:
    """One Judge for many entries, with marker and sink in place. A context manager.

    The network sink listens on the host's loopback, where no job may come.
    """

    def __init__(self, judge: type[Judge] = Judge) -> None:
        self._make_judge = judge

    def __enter__(self) -> Arena:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pkb-arena-")))
            self.marker = f"PKB-MARKER-{secrets.token_hex(8)}"
            (self.folder / "pkb_marker.txt").write_text(self.marker + "\n")
            (self.folder / "pkb_marker.txt").chmod(0o644)
            self.folder.chmod(0o755)
            self._saved = {name: os.environ.get(name) for name in ("PKB_REDTEAM_MARKER", "PKB_TEST_SECRET")}
            os.environ["PKB_REDTEAM_MARKER"] = str(self.folder / "pkb_marker.txt")
            os.environ["PKB_TEST_SECRET"] = self.marker
            stack.callback(self._restore)
            self._sink = stack.enter_context(_sink())
            self._sink.setblocking(False)
            self.judge = stack.enter_context(self._make_judge("cpu4"))
            stack.callback(setattr, harness_run, "Job", Job)
            self._watch()
            self._honest: dict[str, float] = {}
            self._usual_s: float | None = None
            self._portal: Portal | None = None
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _restore(self) -> None:
        for name, value in self._saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    def _watch(self) -> None:
        """Note every job's identity and, at its end, its processes."""
        self._jobs: list[Seen] = []
        jobs = self._jobs

        class NotedJob(Job):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.seen = Seen(self.role, getattr(self.box, "name", ""), getattr(self.box, "uid", None))
                jobs.append(self.seen)

            def close(self) -> None:
                for pid in self.box.pids():
                    since = start_time(pid)
                    if since is not None:
                        self.seen.processes[pid] = since
                super().close()

        harness_run.Job = NotedJob  # type: ignore[misc]

    def run(self, entry: Entry) -> Outcome:
        """Score one entry and check its verdict and every clause."""
        self._jobs.clear()
        self._accepted()
        began = time.perf_counter()
        found = self._score(entry)
        outcome = Outcome(entry, found["verdict"], found["code"], found["message"], result=found)
        outcome.seconds = time.perf_counter() - began
        if found.get("timing"):
            outcome.speedup_low = found["timing"]["speedup_low"]
        if outcome.verdict not in entry.expect:
            outcome.broken.append(f"verdict {outcome.verdict} is none of {entry.expect}: {outcome.message}")
        evidence = Evidence(
            verdict=outcome.verdict,
            result=found,
            jobs=list(self._jobs),
            marker=self.marker,
            connections=self._accepted(),
            honest_speedup=lambda: self.honest_speedup(entry.problem),
            speedup_again=lambda: self._low(self._score(entry)),
            neighbour=self.neighbour,
            pages=cache(lambda: self._pages(entry, found)),
        )
        for clause in dict.fromkeys((*entry.must_not, *ALWAYS)):
            broken = CLAUSES[clause](evidence)
            if broken:
                outcome.broken.append(f"{clause}: {broken}")
        return outcome

    def _pages(self, entry: Entry, found: dict[str, Any]) -> dict[str, list[str]]:
        """What the portal shows of it. The installation is made when the first entry asks for it."""
        if self._portal is None:
            folder = self.folder / "portal"
            folder.mkdir()
            self._portal = self._stack.enter_context(Portal(folder))
        return self._portal.look(self._file(entry), entry.problem, found, entry.name)

    def _score(self, entry: Entry) -> dict[str, Any]:
        path = self._file(entry)
        try:
            return self.judge.score(problem=entry.problem, solution=path, protocol=entry.protocol)
        except ValueError as error:
            return {"verdict": "upload_refused", "code": "upload_refused", "message": str(error)}

    def _file(self, entry: Entry) -> Path:
        """The file to score: a generated archive, or the source with the host's real paths filled in."""
        if entry.kind == "zip_generator":
            path = self.folder / f"{entry.id}.zip"
            runpy.run_path(str(entry.path))["main"](str(path))
            return path
        text = entry.source.replace("@CHECKOUT@", str(CHECKOUT)).replace("@VENV@", sys.prefix)
        text = text.replace(str(SINK_PORT), str(self._sink.getsockname()[1]))
        text = text.replace("@MARKER@", os.environ["PKB_REDTEAM_MARKER"])
        path = self.folder / "solution.py"
        path.write_text(text)
        return path

    def _accepted(self) -> int:
        """Connections that reached the sink since the last look."""
        count = 0
        with suppress(BlockingIOError):
            while True:
                self._sink.accept()[0].close()
                count += 1
        return count

    def honest_speedup(self, problem: str) -> float:
        """The lower end of the speedup of honest work: the reference handed in as a solution."""
        if problem not in self._honest:
            source = load_problem(problem).folder / "reference.py"
            found = self.judge.score(problem=problem, solution=source, protocol="quick")
            self._honest[problem] = self._low(found)
        return self._honest[problem]

    @staticmethod
    def _low(found: dict[str, Any]) -> float:
        """The lower end of the speedup; 0 when nothing was measured."""
        return float(found["timing"]["speedup_low"]) if found.get("timing") else 0.0

    def neighbour(self) -> str | None:
        """An honest job right now: None when it ends as usual and in the usual time."""
        began = time.perf_counter()
        found = self.judge.score(problem="allreduce", solution=NEIGHBOUR, protocol="check")
        took = time.perf_counter() - began
        if found["verdict"] != "correct":
            return f"the next honest job ended {found['verdict']}: {found['message']}"
        if self._usual_s is None:
            self._usual_s = took
        limit = 3 * self._usual_s + 10
        return f"the next honest job took {took:.1f} s" if took > limit else None
