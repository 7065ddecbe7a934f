"""One score: builds, jobs, stages, and what happened, up to the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import Any, Protocol

from evaluator.harness import ahead, looking, protocol, result, upstream, verdict
from evaluator.harness.builds import Builder, BuildFailed, Built
from evaluator.harness.cardjob import CardJob
from evaluator.harness.cardprotocol import CardSession, lanes_for
from evaluator.harness.cases import Cases, slot_sizes
from evaluator.harness.errors import JudgeFault, Stopped
from evaluator.harness.job import Job
from evaluator.harness.reports import JobFailed
from evaluator.harness.warm import Template
from problems.registry import Problem, Target

Stage = Callable[[str, dict[str, Any]], None]
ArtifactCall = Callable[[str, bytes], None]
ROUNDS = 3
STEADY = 0.10
SPOILT = frozenset({"slowed", "disturbed"})
"""Why a round may not count, of what a file can bring about itself."""
REPEATED_WITHIN_S = 180.0
PROFILE_SLOT = 1 << 20
PROFILE_CALLS = 6
"""What a profile asks of the ranks in one message: warm-up, traced calls and the logged one."""
IMPOSSIBLE = 2


class Bench(Protocol):
    """What a run needs from the judge: the target, templates, a builder."""

    target: Target
    builder: Builder

    @property
    def grade(self) -> str: ...

    def take(self) -> Template: ...

    def refill(self) -> None: ...

    def stand_still(self) -> None: ...

    def start_next(self) -> None: ...

    def settle(self) -> None: ...

    def built_ahead(self, files: dict[str, bytes]) -> list[Any] | None: ...


def factories_of(problem: Problem) -> dict[str, bytes]:
    """The problem's own factories, where it has any: they lie beside the file."""
    own = problem.folder / "factories.py"
    return {"factories.py": own.read_bytes()} if own.exists() else {}


class Run:
    """One score of one file on one problem, size and protocol."""

    def __init__(
        self,
        bench: Bench,
        problem: Problem,
        size: str,
        protocol_name: str,
        files: dict[str, bytes],
        *,
        on_stage: Stage | None,
        on_artifact: ArtifactCall | None,
        should_stop: Callable[[], bool] | None,
        seed: int | None,
        noise_floor: float,
    ) -> None:
        self.bench, self.problem, self.size = bench, problem, size
        self.protocol_name, self.files = protocol_name, files
        self.noise_floor = noise_floor
        self.durations: dict[str, float] = {}
        self.jobs: list[Job] = []
        self.session: protocol.Session | None = None
        self.built = Built()
        self.discarded: list[dict[str, Any]] = []
        self.unsteady: list[str] = []
        self.upstream: dict[str, Any] | None = None
        self.look = looking.Look()
        self._memory: dict[str, int | None] = {}
        self._sizes = (0, 0)
        self._sent: dict[str, bytes] = {}
        self._floor = problem.floor(size, bench.target) or 0.0
        self._seed = seed
        self._on_stage, self._should_stop = on_stage, should_stop
        self._on_artifact = on_artifact
        self._stage: tuple[str, float] | None = None
        self._new_cases()

    def _new_cases(self) -> None:
        target = self.bench.target
        self.cases = Cases(self.problem, self.size, target.ranks, self._seed, target.device)

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
            self._rounds()
            found = verdict.correct(timed=self._timed)
        except protocol.Verdicted as known:
            found = known.found
        except InterruptedError as error:
            raise Stopped from error
        except RuntimeError as error:
            if not self._on_cards:
                raise
            raise JudgeFault(f"the judge's own work on the cards failed: {error}") from error
        self.stage("reporting")
        return self._report(found)

    def _rounds(self) -> None:
        """Measure; again on a fresh start, at most twice, when the host was not steady or the time is impossible.

        No round begins late for mere unsteadiness: a file that brings it about would hold the host three times as long.
        """
        extra = factories_of(self.problem)
        libraries = self._build(extra)
        if self._timed:
            self.bench.stand_still()
        below, began = 0, time.monotonic()
        for number in range(ROUNDS):
            if number:
                self._seed = None
                self._new_cases()
            self._round(extra, libraries)
            below = below + 1 if self.below_floor() else 0
            if below == IMPOSSIBLE:
                raise protocol.Verdicted(verdict.impossible(self._solution_seconds(), self._floor))
            late = time.monotonic() - began > REPEATED_WITHIN_S
            if (not below and (late or not self.unsteady)) or number + 1 == ROUNDS:
                break
            self._discard()
            self._close_jobs()
            self.bench.refill()
        self._compare_rounds()

    def _compare_rounds(self) -> None:
        """Flag a score whose file may have chosen its round: one that it can spoil itself had read less."""
        timing = self.session.timing if self.session else None
        spoilt = [row["speedup"] for row in self.discarded if SPOILT & set(row["why"]) and "speedup" in row]
        if not spoilt or timing is None or not timing.pairs:
            return
        if timing.result().value > (1 + max(self.noise_floor, STEADY)) * min(spoilt):
            self.unsteady.append("rounds_differ")

    def _discard(self) -> None:
        """Keep of a round that does not count why, and what it read."""
        why = [*self.unsteady, *(["below_floor"] if self.below_floor() else [])]
        timing = self.session.timing if self.session else protocol.Timing()
        read = {"speedup": timing.result().value, **timing.shown()} if timing.pairs else {}
        self.discarded.append({"why": why, **read})

    def _solution_seconds(self) -> float:
        pairs = self.session.timing.pairs if self.session else []
        return median(pair[1] for pair in pairs) if pairs else math.inf

    def below_floor(self) -> bool:
        """Whether the last measurement is faster than the bytes that must be exchanged can travel."""
        return self._solution_seconds() < self._floor

    def _build(self, extra: dict[str, bytes]) -> dict[str, bytes]:
        """Compile what the file builds at import, before anything runs: name → library bytes."""
        if self.bench.grade == "none" or not ahead.builds_something(self.files):
            return {}
        self.stage("building")
        deadlines = self.bench.target.data["deadlines"]
        files = {**self.files, **extra}
        units = self.bench.built_ahead(files)
        if units is None:
            units = self.bench.builder.remembered(files)
        if units is None:
            template = self.bench.take()
            self.bench.refill()
            units = ahead.recorded(template, self.problem, files, self._should_stop)
        began = time.perf_counter()
        try:
            libraries, self.built = self.bench.builder.build(
                units, float(deadlines["build_s"]), self._should_stop, files=files
            )
        except BuildFailed as failure:
            self.built = Built(time.perf_counter() - began, cached=False)
            text = self.files["solution.py"].decode(errors="replace")
            raise protocol.Verdicted(verdict.from_build(failure, text)) from failure
        if units:
            self.bench.builder.remember(files, units)
        return {name: path.read_bytes() for name, path in libraries.items()}

    def _round(self, extra: dict[str, bytes], libraries: dict[str, bytes]) -> None:
        """Both jobs on fresh templates, correctness, and where asked for the timed part."""
        self.stage("starting")
        trials = [self.cases.answers(n) for n in range(protocol.TRIALS)]
        sizes = self._sizes = slot_sizes(self.cases, trials)
        self._sent = {**self.files, **extra, **libraries}
        text = (self.problem.folder / "reference.py").read_bytes()
        reference = self._job("reference", {"solution.py": text, **extra}, sizes)
        limit = float(self.bench.target.data["deadlines"]["import_s"])
        paper = self.protocol_name == "paper"
        submission = self._job("submission", self._sent, sizes, held=paper)
        self.bench.start_next()
        try:
            reference.start(limit)
            if paper:
                submission.join(limit)
        except JobFailed as failure:
            told = verdict.from_failure(failure).message
            raise JudgeFault(
                f"the reference, or a job that had seen no file, did not start: {told}"
            ) from failure
        kind = CardSession if self._on_cards else protocol.Session
        session = kind(self.problem, self.cases, reference, self._should_stop)
        if paper:
            # Undisturbed: the submission's ranks are frozen, and no line of the file has run.
            self.bench.settle()
            session.measure_handshake()
            session.timing.before = session.reference_block()
        try:
            submission.start(limit, self._should_stop)
        except JobFailed as failure:
            self.session = session
            raise session.blamed(failure, submission) from failure
        if not paper and self.protocol_name != "check":
            # Not before: what the file does at import, or a template that starts, would count as the protocol's cost.
            self.bench.settle()
            session.measure_handshake()
        session.submission = submission
        self.session = session
        self._measure(session)

    def _measure(self, session: protocol.Session) -> None:
        """Correctness, then (unless `check`) warm-up and paired blocks."""
        self.stage("correctness")
        session.run_trials()
        plan = session.plan(self.protocol_name if self.bench.target.timed else "check")
        if plan.timed:
            self.bench.settle()
            self.stage("warmup", calls=plan.warmup)
            session.warm_up(plan.warmup)
            self.stage("timing", pairs=plan.pairs)
            session.run_pairs(plan)
        if self.protocol_name == "paper":
            self.upstream = upstream.run(session)
        self._look_at(session)
        if session.timing.before is not None and session.submission is not None:
            session.submission.close()
            session.timing.after = session.reference_block()
            self.unsteady = session.timing.unsteady(max(self.noise_floor, STEADY))

    def _look_at(self, session: protocol.Session) -> None:
        """Calls under a profiler, after the last one that counts; in `profile` in a job of their own."""
        if session.submission is None:
            return
        call = self.cases.call(protocol.TRIALS - 1).packed
        self._memory = self._peaks()  # what the profiler takes is not the file's
        if self.bench.target.device == "cuda":
            seen = looking.look(session.reference, call, session.first_limit, detail=False, calls=0)
            self._memory["reference_device"] = seen.device_peak
            seen = looking.look(session.submission, call, session.first_limit, detail=False, calls=0)
            self._memory["submission_device"] = seen.device_peak
        if self.protocol_name != "profile":
            self.look = looking.look(session.submission, call, session.first_limit, detail=False)
            return
        self.stage("profiling")
        inputs, outputs = self._sizes
        job = self._job("profile", self._sent, (inputs, max(outputs, PROFILE_SLOT)))
        try:
            job.start(float(self.bench.target.data["deadlines"]["import_s"]), self._should_stop)
        except JobFailed as failure:
            self.look = looking.Look(note=f"the job for the profile did not start ({failure.kind})")
            return
        self.look = looking.look(job, call, PROFILE_CALLS * session.first_limit, detail=True)

    @property
    def _timed(self) -> bool:
        return self.protocol_name != "check" and self.bench.target.timed

    @property
    def _on_cards(self) -> bool:
        """Whether calls travel through card memory: where times on cards are ranked."""
        return self.bench.target.device == "cuda" and self.bench.target.timed

    def _job(self, role: str, files: dict[str, bytes], sizes: tuple[int, int], *, held: bool = False) -> Job:
        template = self.bench.take()
        if self._on_cards:
            batches = self.protocol_name != "check" and role != "profile"
            lanes = lanes_for(*sizes) if batches else 2
            job: Job = CardJob(template, self.problem, role, files, *sizes, lanes=lanes, held=held)
        else:
            job = Job(template, self.problem, role, files, *sizes, held=held)
        self.jobs.append(job)
        return job

    def _report(self, found: verdict.Verdict) -> dict[str, Any]:
        memory = self._memory or self._peaks()
        text: dict[str, str] = {}
        for job in self.jobs:
            if job.role == "submission":
                job.close()
                streams = job.log.result()
                text = {name: stream.text for name, stream in streams.items() if stream.text.strip()}
        if found.code.startswith("runtime_error.sig"):
            found = verdict.at_line(found, text.get(f"rank {found.rank} stderr", ""))
        self.stage("done")
        facts = result.Facts(
            problem=self.problem,
            target=self.bench.target,
            size=self.size,
            protocol=self.protocol_name,
            grade=self.bench.grade,
            verdict=found,
            session=self.session,
            stacks=self.session.stacks if self.session else {},
            log=text,
            memory=memory,
            built=self.built,
            durations=self.durations,
            seed=self.cases.seed,
            files=self.files,
            discarded=self.discarded,
            unsteady=self.unsteady,
            below_floor=self.below_floor(),
            noise_floor=self.noise_floor,
            upstream=self.upstream,
            look=self.look,
        )
        if self.protocol_name == "profile" and self._on_artifact is not None:
            for name, content in self.look.artifacts().items():
                self._on_artifact(name, content)
        return result.build(facts)

    def _peaks(self) -> dict[str, int | None]:
        """Most memory that each job has held so far, bytes."""
        return {job.role: job.peak_bytes() for job in self.jobs}

    def _close_jobs(self) -> None:
        for job in self.jobs:
            with suppress(OSError):
                job.close()
        self.jobs.clear()

    def close(self) -> None:
        """Nothing of the run survives it."""
        self._close_jobs()
