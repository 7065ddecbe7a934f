"""The protocol of one score: trials, warm-up, paired blocks (design section 5, "Timing")."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Protocol

from evaluator.harness import claims, explain, verdict
from evaluator.harness.cases import Call, Cases
from evaluator.harness.check import check_rank, home, validity
from evaluator.harness.errors import JudgeFault, SizeTooLarge, Stopped
from evaluator.harness.job import Job, Turn
from evaluator.harness.reports import JobFailed, Spans
from evaluator.harness.sandbox import tcpmemory
from evaluator.harness.sandbox.rounds import until_none_left
from evaluator.harness.stats import Speedup, speedup
from evaluator.harness.verdict import Verdict
from problems.leaves import Answer
from problems.registry import Problem

TRIALS = 5
HANDSHAKES = 11
SLOWED = 2.0
"""Honest neighbours cost the reference up to 1.7 times its time alone (small sizes: cold caches, a loaded machine)."""
FREED_S = 5.0
"""How long the buffers of a job may take to go after its end."""
BLOCK_WARMUP, BLOCK_CALLS = 5, 15
LEAST_WARMUP, LEAST_PAIRS = 5, 10
ENOUGH_S = 60.0
"""Once the submission's calls after the trials have taken so long, no more than these least ones are asked for. Plans
go by the reference: a file that slept just below the deadline in each of 600 calls had a host for two hours."""


@dataclass(frozen=True)
class Plan:
    """How much is measured. Numbers of calls are per side."""

    name: str
    timed: bool
    pairs: int
    block: int
    warmup: int


def plan(protocol: str, t_reference: float, rng: random.Random) -> Plan:
    """The plan for a protocol, given the reference's seconds per call.

    paper: warm-up min(500, 3 s/t), at least 5; timed calls clamp(5 s/t, 10, 100) in 20 pairs of
    blocks of at most 5 calls. quick, profile: pairs of blocks of 2 calls, 20 of them where 3 s allow it,
    at least 6.
    """
    if protocol == "check":
        return Plan("check", False, 0, 0, 0)
    if protocol in ("quick", "profile"):
        pairs = max(6, min(20, int(3 / (4 * t_reference))))
        return Plan(protocol, True, pairs, 2, 5 + rng.randrange(3))
    warmup = max(5, min(500, int(3 / t_reference)))
    calls = max(10, min(100, int(5 / t_reference)))
    pairs = min(20, calls)
    spread = rng.randrange(max(1, warmup // 10))
    return Plan("paper", True, pairs, max(1, math.ceil(calls / pairs)), warmup + spread)


class CardFigures(Protocol):
    """What is known of times on cards (`cardprotocol.CardTiming`)."""

    @property
    def below_resolution(self) -> bool: ...

    @property
    def launch_bound(self) -> bool: ...

    @property
    def slowed(self) -> bool: ...

    @property
    def resolution(self) -> float: ...

    @property
    def calls(self) -> int: ...

    @property
    def stream(self) -> list[tuple[float, float]]: ...

    @property
    def gate(self) -> list[tuple[float, float]]: ...

    def shown(self) -> dict[str, Any]: ...


class Verdicted(Exception):
    """The submission's verdict is known; nothing more needs to run."""

    def __init__(self, found: Verdict) -> None:
        super().__init__(found.message)
        self.found = found


@dataclass
class Timing:
    """Raw figures of the timed part; seconds."""

    pairs: list[tuple[float, float]] = field(default_factory=list)
    reference_calls: list[float] = field(default_factory=list)
    solution_calls: list[float] = field(default_factory=list)
    trial_calls: list[float] = field(default_factory=list)
    """Of the solution in the trials, each revealed by itself."""
    handshakes: list[float] = field(default_factory=list)
    outside_minus_ranks: list[float] = field(default_factory=list)
    """Per block of calls: the outside clock less the ranks' own first start to last end, summed over its calls."""
    arguments: list[float] = field(default_factory=list)
    """Per call what the slowest rank's shim took to read the message and make the arguments."""
    copies: list[float] = field(default_factory=list)
    """Per call what the slowest rank's shim took to copy the outputs into its slot."""
    block: int = 1
    """Calls per block."""
    warmup: int = 0
    disturbed: int = 0
    """Turns of the reference in pairs beside which the submission's frozen job freed memory or was at work."""
    before: float | None = None
    after: float | None = None
    card: CardFigures | None = None
    """On cards that rank times: what stream mode and the gate said."""

    @property
    def handshake(self) -> float:
        return median(self.handshakes) if self.handshakes else 0.0

    @property
    def below_resolution(self) -> bool:
        if self.card is not None:
            return self.card.below_resolution
        calls = self.reference_calls + self.solution_calls
        return bool(calls) and min(calls) < 2 * self.handshake

    @property
    def slowed(self) -> bool:
        """Whether the reference was far slower between the submission's turns than alone, both before and after."""
        if self.before is None or self.after is None or not self.pairs:
            return False
        if self.card is not None:
            return self.card.slowed
        return median(pair[0] for pair in self.pairs) > SLOWED * max(self.before, self.after)

    def unsteady(self, drift: float) -> list[str]:
        """Why this measurement does not count; nothing where it does.

        `drift`: relative, as far as the reference's time alone may differ before and after the pairs; on cards also by
        as much as their clock cannot tell.
        """
        why = []
        if self.before is not None and self.after is not None:
            untold = self.card.resolution if self.card is not None else 0.0
            if abs(self.after - self.before) > drift * self.before + untold:
                why.append("drift")
        if self.slowed:
            why.append("slowed")
        if self.disturbed:
            why.append("disturbed")
        return why

    def shown(self) -> dict[str, float | None]:
        """Medians of the pairs, and the reference alone, ms per call."""
        return {
            "solution_ms": 1e3 * median(pair[1] for pair in self.pairs),
            "reference_ms": 1e3 * median(pair[0] for pair in self.pairs),
            "before_ms": None if self.before is None else 1e3 * self.before,
            "after_ms": None if self.after is None else 1e3 * self.after,
        }

    def result(self) -> Speedup:
        return speedup(self.pairs)


class Session:
    """Reference and submission side by side; the state that the stages share."""

    least_pairs = LEAST_PAIRS

    def __init__(
        self,
        problem: Problem,
        cases: Cases,
        reference: Job,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self.problem, self.cases = problem, cases
        self.reference = reference
        self.submission: Job | None = None
        self._should_stop = should_stop
        deadlines = reference.target.data["deadlines"]
        self.first_limit, self.limit = float(deadlines["first_call_s"]), float(deadlines["call_s"])
        self.rng = random.Random(cases.seed)  # noqa: S311 (order of blocks; the seed is secret)
        self.next_call = 0
        self.trials: list[dict[str, Any]] = []
        self.ranks: list[dict[str, Any]] = []
        self.stacks: dict[int, str] = {}
        self.timing = Timing()
        self.built_late = False
        self.spent = 0.0
        """Seconds that the submission's calls have taken since the trials."""

    def run_reference(self, call: Call) -> Turn:
        """A turn of the reference. Its failure is ours."""
        self.stop_if_asked()
        self._let_go()
        try:
            turn = self.reference.call(call.packed, self.first_limit, "call")
        except JobFailed as failure:
            told = verdict.from_failure(failure)
            if told.verdict == "out_of_memory":
                raise SizeTooLarge(
                    f"size {self.cases.size} of {self.problem.slug} does not fit {self.reference.target.slug}: "
                    "the reference itself goes over the memory that a job may hold."
                ) from failure
            raise JudgeFault(f"the reference failed: {told.message}") from failure
        if any(turn.late) or any(turn.unfinished) or any(index is not None for index in turn.changed):
            raise JudgeFault("the reference changed an input or wrote after it was done")
        return turn

    def note_disturbance(self) -> None:
        """Count a turn of the reference beside which the submission's frozen job was at work; only turns that count."""
        if self.submission is not None and self.submission.letting_go.fell():
            self.timing.disturbed += 1

    def run_submission(self, call: Call, limit: float) -> Turn:
        """A turn of the submission. Raises Verdicted when it can't be accepted whatever it computed."""
        self.stop_if_asked()
        self._let_go()
        if self.submission is None:
            raise JudgeFault("the submission's job was not started")
        try:
            turn = self.submission.call(call.packed, limit, "call")
        except JobFailed as failure:
            raise self.blamed(failure, self.submission) from failure
        self.built_late |= turn.built_late
        for rank, late in enumerate(turn.late):
            if late:
                raise Verdicted(verdict.late_write(rank))
        if tcpmemory.crowded():
            raise self.hoarded(self.submission)
        return turn

    def _let_go(self) -> None:
        """Begin no turn while the kernel still frees what the submission's job let go of in its own."""
        if self.submission is not None:
            self.submission.letting_go.wait()

    def hoarded(self, submission: Job) -> Verdicted:
        """The verdict of a job that keeps the machine's TCP memory full. JudgeFault when it was somebody else."""
        submission.close()
        if until_none_left(lambda: [True] if tcpmemory.crowded() else [], FREED_S):
            raise JudgeFault("the host's memory for TCP is full: connections on it are slow")
        return Verdicted(verdict.hoarded())

    def blamed(self, failure: JobFailed, submission: Job) -> Verdicted:
        """The submission's verdict for its failed job. JudgeFault when the host can't stop any job at all."""
        self.stacks = failure.stacks
        if failure.kind == "unstoppable":
            submission.close()
            try:
                self.reference.handshake()
            except JobFailed as ours:
                raise JudgeFault(f"no job can be stopped on this host: {ours}") from failure
        found = verdict.from_failure(failure)
        if found.code == "contract_error.signature":
            found.message += f". The problem is called as `{' '.join(self.problem.signature.split())}`."
        return Verdicted(found)

    def stop_if_asked(self) -> None:
        if self._should_stop is not None and self._should_stop():
            raise Stopped

    def judge(self, call: Call, mine: Turn, theirs: Turn, want: list[Answer], where: str) -> None:
        """Compare one call on all ranks. Raises Verdicted with the first rank's fault."""
        for rank, (claim, expected) in enumerate(zip(mine.claims, theirs.claims, strict=True)):
            found = claims.difference(claim, expected)
            if found:
                raise Verdicted(verdict.from_claim(*found, rank))
        got = answers_of(mine)
        mismatches = [
            check_rank(self.problem, mine_, want_, rank)
            for rank, (mine_, want_) in enumerate(zip(got, want, strict=True))
        ]
        self.ranks = [_rank_row(rank, wrong) for rank, wrong in enumerate(mismatches)]
        first = next((wrong for wrong in mismatches if wrong), None)
        first = first or validity(self.problem, call.args, got, want, self.cases.size)
        if first:
            found_verdict = verdict.from_mismatch(first, where)
            _hint(found_verdict, self.problem, call, [home(answer) for answer in got])
            raise Verdicted(found_verdict)
        self._check_arguments(mine, theirs)

    def _check_arguments(self, mine: Turn, theirs: Turn) -> None:
        """Read-only arguments are as they were, nothing was still at work on the others, outputs are apart."""
        for rank, index in enumerate(mine.changed):
            if index is not None:
                raise Verdicted(verdict.input_changed(self.problem.arguments[index].name, rank))
        for rank, name in enumerate(mine.unfinished):
            if name is not None:
                raise Verdicted(verdict.unfinished(name, rank))
        for rank, (shared, allowed) in enumerate(zip(mine.shared, theirs.shared, strict=True)):
            for path, index in shared:
                name = self.problem.arguments[index].name
                if name not in self.problem.may_alias(path) and (path, index) not in allowed:
                    raise Verdicted(verdict.shared(path, name, rank))

    def run_trials(self) -> None:
        """Five calls against golden; the reference must pass them too."""
        for trial in range(TRIALS):
            call = self.cases.call(self.next_call)
            want = self.cases.answers(self.next_call)
            self.next_call += 1
            theirs = self.run_reference(call)
            for rank, (answer, truth) in enumerate(zip(answers_of(theirs), want, strict=True)):
                wrong = check_rank(self.problem, answer, truth, rank)
                if wrong:
                    raise JudgeFault(f"the reference disagrees with golden: {wrong}")
            row: dict[str, Any] = {"trial": trial + 1, "ok": False}
            self.trials.append(row)
            mine = self.run_submission(call, self.first_limit if trial == 0 else self.limit)
            self.timing.trial_calls.append(mine.seconds)
            self.judge(call, mine, theirs, want, f"trial {trial + 1} of {TRIALS}")
            row["ok"] = True

    def plan(self, protocol: str) -> Plan:
        """What to measure, by the time that one call of the reference takes."""
        turn = self.run_reference(self.cases.call(TRIALS - 1))
        return plan(protocol, max(1e-5, turn.seconds), random.SystemRandom())

    def warm_up(self, count: int) -> None:
        """Calls that look like any other; every output is compared too."""
        for index in range(count):
            if index >= LEAST_WARMUP and self._tired:
                break
            call = self.cases.call(self.next_call)
            self.next_call += 1
            theirs = self.run_reference(call)
            mine = self.run_submission(call, self.limit)
            self.judge(call, mine, theirs, answers_of(theirs), f"warm-up call {index + 1}")
            self.spent += mine.seconds
            self.timing.warmup = index + 1

    def measure_handshake(self) -> None:
        """What a turn costs in which nothing is done; the reference's job is the one we can believe."""
        self.timing.handshakes = [self.reference.handshake() for _ in range(HANDSHAKES)]

    def reference_block(self) -> float:
        """Seconds per call of the reference with no other job on the host: median of a block."""
        times = []
        for index in range(BLOCK_WARMUP + BLOCK_CALLS):
            turn = self.run_reference(self.cases.call(self.next_call + index))
            if index >= BLOCK_WARMUP:
                times.append(self._net(turn))
        self.next_call += BLOCK_WARMUP + BLOCK_CALLS
        return median(times)

    @property
    def _tired(self) -> bool:
        return self.spent > ENOUGH_S

    def run_pairs(self, plan: Plan) -> None:
        """The pairs of the plan; fewer and smaller ones for a submission that takes too long."""
        block = 1 if self._tired else plan.block
        for number in range(plan.pairs):
            if number >= self.least_pairs and self._tired:
                break
            self.run_pair(block, number)

    def run_pair(self, size: int, number: int) -> None:
        """One pair of blocks on the same calls, in random order; compared after both."""
        calls = [self.cases.call(self.next_call + i) for i in range(size)]
        self.next_call += size
        order = [True, False]
        self.rng.shuffle(order)
        turns: dict[bool, list[Turn]] = {}
        for is_reference in order:
            if is_reference:
                turns[True] = [self._beside(call) for call in calls]
            else:
                turns[False] = [self.run_submission(call, self.limit) for call in calls]
        for index, call in enumerate(calls):
            theirs, mine = turns[True][index], turns[False][index]
            where = f"timed pair {number + 1}, call {index + 1}"
            self.judge(call, mine, theirs, answers_of(theirs), where)
        timing = self.timing
        references = [self._net(turn) for turn in turns[True]]
        solutions = [self._net(turn) for turn in turns[False]]
        timing.pairs.append((sum(references) / size, sum(solutions) / size))
        timing.reference_calls += [turn.seconds for turn in turns[True]]
        timing.solution_calls += [turn.seconds for turn in turns[False]]
        self.spent += sum(turn.seconds for turn in turns[False])
        timing.block = size
        for side in turns.values():
            gaps = [gap for turn in side if (gap := _outside_gap(turn)) is not None]
            if len(gaps) == size:
                timing.outside_minus_ranks.append(sum(gaps))
            for told in filter(None, map(_told, side)):
                timing.arguments.append(max(s.began - s.woken for s in told) / 1e9)
                timing.copies.append(max(s.ended - s.returned for s in told) / 1e9)

    def _beside(self, call: Call) -> Turn:
        """A turn of the reference in a pair."""
        turn = self.run_reference(call)
        self.note_disturbance()
        return turn

    def _net(self, turn: Turn) -> float:
        """Raw seconds less the handshake, but never less than half of the raw time."""
        return max(turn.seconds - self.timing.handshake, turn.seconds / 2)


def answers_of(turn: Turn) -> list[Answer]:
    """The outputs as trees. The claims must be those of the reference, or found equal to them."""
    return [
        Answer(claims.tree(claim, data), inout)
        for claim, data, inout in zip(turn.claims, turn.outputs, turn.inout, strict=True)
    ]


def _outside_gap(turn: Turn) -> float | None:
    """Outside clock less the ranks' own first start to last end, seconds; None for odd claims."""
    told = _told(turn)
    if told is None:
        return None
    return turn.seconds - (max(s.ended for s in told) - min(s.woken for s in told)) / 1e9


def _told(turn: Turn) -> list[Spans] | None:
    """What all ranks' clocks say; None unless all of it can be true."""
    told = [spans for spans in turn.spans if spans is not None]
    return told if told and len(told) == len(turn.spans) else None


def _rank_row(rank: int, wrong: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"rank": rank, "ok": wrong is None}
    if wrong is not None:
        row.update(output=wrong.output, kind=wrong.kind, message=wrong.message)
        if wrong.wrong is not None:
            worst = wrong.wrong.max_error
            row["first_wrong"] = {
                **asdict(wrong.wrong),
                "index": list(wrong.wrong.index),
                "max_error": worst if math.isfinite(worst) else None,
            }
    return row


def _hint(found: Verdict, problem: Problem, call: Call, got: list[Answer]) -> None:
    """Say so when a missing collective explains the answer."""
    if found.code == "incorrect.nonfinite":
        return
    if explain.is_own_argument(call.args, got):
        reason = "On every rank the output equals one of its own arguments"
    elif explain.without_communication(problem, call.packed, got):
        reason = "Every rank's output is what comes out when nothing is exchanged"
    else:
        return
    found.code = "incorrect.no_communication_suspected"
    found.message += f" {reason}: is a collective missing?"
