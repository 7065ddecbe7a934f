"""The judge: one score from a file to the result that the portal stores (design section 5)."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from evaluator.harness import protocol, result, verdict
from evaluator.harness.builds import Builder, BuildFailed, Built
from evaluator.harness.cases import Cases, slot_sizes
from evaluator.harness.errors import JudgeFault, NoSandbox, Stopped
from evaluator.harness.job import Job, JobFailed
from evaluator.harness.samples import bundled_hashes
from evaluator.harness.sandbox import host_grade
from evaluator.harness.source import solution_files
from evaluator.harness.warm import Pool, Template
from problems.registry import Problem, load_problem, load_target

PROTOCOLS = ("check", "quick", "paper")
BUILD_WORDS = (b"cpp_extension", b"cuda_helpers", b"load_inline")
Stage = Callable[[str, dict[str, Any]], None]


class Judge:
    """Scores files for one target on this host. Keep one per process; it keeps templates warm.

    Must live in one long-lived thread. Not safe for two scores at a time: never two timed jobs on
    one host.
    """

    def __init__(self, target: str = "cpu4", *, warm: int = 2) -> None:
        self.target = load_target(target)
        if self.target.device != "cpu":
            raise JudgeFault(f"target {target} needs cards; this harness build scores CPU targets")
        self.host = host_grade()
        self._pool = Pool(self.target, warm, isolated=self.host.grade != "none")
        self.builder = Builder(self.target)

    def close(self) -> None:
        """End the warm templates."""
        self._pool.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def score(
        self,
        *,
        problem: str,
        solution: Path,
        size: str | None = None,
        protocol: str = "quick",
        on_stage: Stage | None = None,
        should_stop: Callable[[], bool] | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """The result JSON (`schema: 1`). Raises JudgeFault, Stopped, NoSandbox, UnknownProblem."""
        chosen = load_problem(problem)
        size = size or self.target.cells[0]
        chosen.size(size)
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocol {protocol!r} is none of {PROTOCOLS}")
        if self.target.ranks not in chosen.world_sizes:
            raise JudgeFault(f"{chosen.slug} is not defined for {self.target.ranks} ranks")
        files = solution_files(solution)
        if self.host.grade == "none" and _sha256(files) not in bundled_hashes():
            raise NoSandbox(list(self.host.reasons), self.host.fix)
        run = _Run(self, chosen, size, protocol, files, on_stage, should_stop, seed)
        try:
            return run.score()
        finally:
            run.close()
            self._pool.refill()

    def job(self, problem: Problem, role: str, files: dict[str, bytes], inputs: int, outputs: int) -> Job:
        """A job on a warm template, its ranks already importing the file."""
        return Job(self.take(), problem, role, files, inputs, outputs)

    def refill(self) -> None:
        """Warm up replacements; only while nothing is being timed."""
        self._pool.refill()

    def take(self) -> Template:
        """A warm template; whoever takes it ends it."""
        return self._pool.take()


def _sha256(files: dict[str, bytes]) -> str:
    return hashlib.sha256(files["solution.py"]).hexdigest()


class _Run:
    """One score."""

    def __init__(
        self,
        judge: Judge,
        problem: Problem,
        size: str,
        protocol_name: str,
        files: dict[str, bytes],
        on_stage: Stage | None,
        should_stop: Callable[[], bool] | None,
        seed: int | None,
    ) -> None:
        self.judge, self.problem, self.size = judge, problem, size
        self.protocol_name, self.files = protocol_name, files
        self.cases = Cases(problem, size, judge.target.ranks, seed)
        self.durations: dict[str, float] = {}
        self.jobs: list[Job] = []
        self.session: protocol.Session | None = None
        self.built = Built()
        self._on_stage, self._should_stop = on_stage, should_stop
        self._stage: tuple[str, float] | None = None
        self._stacks: dict[int, str] = {}
        self._plan: protocol.Plan | None = None

    def stage(self, name: str, **detail: Any) -> None:
        """Tell the caller and close the previous stage's clock."""
        now = time.perf_counter()
        if self._stage is not None:
            before, since = self._stage
            self.durations[before] = self.durations.get(before, 0.0) + now - since
        self._stage = (name, now)
        if self._on_stage is not None:
            self._on_stage(name, detail)

    def score(self) -> dict[str, Any]:
        """Run all stages; whatever the submission does ends in a verdict."""
        try:
            self._start()
            assert self.session is not None
            self._measure(self.session)
            found = verdict.correct()
        except protocol.Verdicted as known:
            found = known.found
        except InterruptedError as error:
            raise Stopped from error
        self.stage("reporting")
        return self._report(found)

    def _start(self) -> None:
        """Builds, golden answers, and both jobs up to their ranks' readiness."""
        own = self.problem.folder
        extra = {"factories.py": (own / "factories.py").read_bytes()} if _has(own) else {}
        libraries = self._build(extra)
        self.stage("starting")
        trials = [self.cases.answers(n) for n in range(protocol.TRIALS)]
        inputs, outputs = slot_sizes(self.cases, protocol.TRIALS, trials)
        reference = {"solution.py": (own / "reference.py").read_bytes(), **extra}
        limit = float(self.judge.target.data["deadlines"]["import_s"])
        first = self._job("reference", reference, inputs, outputs)
        second = self._job("submission", {**self.files, **extra, **libraries}, inputs, outputs)
        try:
            first.start(limit)
        except JobFailed as failure:
            raise JudgeFault(
                f"the reference did not start: {verdict.from_failure(failure).message}"
            ) from failure
        try:
            second.start(limit, self._should_stop)
        except JobFailed as failure:
            self._stacks = failure.stacks
            raise protocol.Verdicted(verdict.from_failure(failure)) from failure
        self.session = protocol.Session(self.problem, self.cases, first, second, self._should_stop)

    def _build(self, extra: dict[str, bytes]) -> dict[str, bytes]:
        """Compile what the file builds at import, before anything runs. name → library bytes."""
        source = self.files["solution.py"]
        if self.judge.host.grade == "none" or not any(word in source for word in BUILD_WORDS):
            return {}
        self.stage("building")
        files = {**self.files, **extra}
        recorder = Job(self.judge.take(), self.problem, "recorder", files, 0, 4 << 20, record=True)
        self.judge.refill()
        try:
            units = recorder.recorded_units(float(self.judge.target.data["deadlines"]["first_call_s"]))
        except JobFailed:
            return {}  # a failure to record is no verdict; the ranks will say what is wrong
        finally:
            recorder.close()
        limit = float(self.judge.target.data["deadlines"]["build_s"])
        try:
            libraries, self.built = self.judge.builder.build(units, limit, self._should_stop)
        except BuildFailed as failure:
            raise protocol.Verdicted(
                verdict.from_build(failure, source.decode(errors="replace"))
            ) from failure
        return {name: path.read_bytes() for name, path in libraries.items()}

    def _job(self, role: str, files: dict[str, bytes], inputs: int, outputs: int) -> Job:
        job = self.judge.job(self.problem, role, files, inputs, outputs)
        self.jobs.append(job)
        return job

    def _measure(self, session: protocol.Session) -> None:
        """Correctness, then (unless `check`) warm-up and paired blocks."""
        self.stage("correctness")
        session.run_trials()
        session.measure_handshake()
        call = self.cases.call(protocol.TRIALS - 1)
        t_reference = max(1e-5, session.run_reference(call).seconds)
        self._plan = protocol.plan(self.protocol_name, t_reference, random.SystemRandom())
        if not self._plan.timed:
            return
        self.stage("warmup", calls=self._plan.warmup)
        session.warm_up(self._plan.warmup)
        self.stage("timing", pairs=self._plan.pairs)
        for number in range(self._plan.pairs):
            session.run_pair(self._plan.block, number)

    def _report(self, found: verdict.Verdict) -> dict[str, Any]:
        memory = [job.peak_bytes() for job in self.jobs]
        text = {}
        for job in self.jobs[1:]:
            job.close()
            text = {name: stream.text for name, stream in job.log.result().items() if stream.text.strip()}
        self.stage("done")
        facts = result.Facts(
            problem=self.problem,
            target=self.judge.target,
            size=self.size,
            protocol=self.protocol_name,
            grade=self.judge.host.grade,
            verdict=found,
            session=self.session,
            stacks=self.session.stacks if self.session and self.session.stacks else self._stacks,
            log=text,
            memory=memory,
            built=self.built,
            durations=self.durations,
            seed=self.cases.seed,
            files=self.files,
        )
        return result.build(facts)

    def close(self) -> None:
        """Nothing of the run survives it."""
        for job in self.jobs:
            with suppress(OSError):
                job.close()


def _has(folder: Path) -> bool:
    return (folder / "factories.py").exists()
