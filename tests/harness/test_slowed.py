"""A reference that is slow only beside the submission was slowed, by whatever means: such times do not rank."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.harness import run
from evaluator.harness.cardprotocol import CardTiming
from evaluator.harness.protocol import ENOUGH_S, LEAST_PAIRS, LEAST_WARMUP, Plan, Session, Timing
from problems.registry import load_problem


@pytest.mark.parametrize(
    ("beside", "before", "after", "slowed"),
    [
        (1.7, 1.0, 0.9, False),
        (2.1, 1.0, 0.9, True),
        (2.1, 0.9, 1.1, False),  # the host was slow afterwards, too: the drift tells
        (76.0, 1.0, 1.0, True),
        (76.0, None, None, False),  # never measured alone
    ],
)
def test_slowed_is_twice_as_slow_as_alone(
    beside: float, before: float | None, after: float | None, slowed: bool
) -> None:
    timing = Timing(pairs=[(beside, 1.0)] * 6, before=before, after=after)
    assert timing.slowed is slowed


@pytest.mark.parametrize(
    ("beside_us", "alone_us", "slowed"),
    [
        (342, (340, 341), False),
        (348, (340, 341), False),  # of 41 us a tenth is the cards' own
        (395, (340, 341), True),  # 95 us of work where alone it was 41: copies that a file left on the link
        (395, (340, 390), False),  # the card was slow afterwards, too: the drift tells
        (395, (), False),  # never measured alone
    ],
)
def test_on_cards_the_gate_tells_whether_the_reference_was_slowed(
    beside_us: float, alone_us: tuple[float, ...], slowed: bool
) -> None:
    """How fast the host launches does not count: the pairs' stream times are four times those of a quiet host."""
    card = CardTiming(24, gate_cost=300e-6, alone=[1e-6 * alone for alone in alone_us])
    card.gate = [(1e-6 * beside_us, 1e-3)] * 6
    card.stream = [(4e-4, 4e-4)] * 6
    timing = Timing(pairs=[(4e-4, 4e-4)] * 6, card=card)
    if alone_us:
        timing.before, timing.after = 1e-4, 1e-4
    assert timing.slowed is slowed


class _Slept(Session):
    """A session of stand-ins, in whose pairs the reference takes `beside` seconds and alone one."""

    def __init__(self, beside: float, disturbed: int, after: float) -> None:
        self.after = after
        self.timing = Timing(before=1.0, disturbed=disturbed)
        self.spent = 0.0
        self._beside = beside
        self.submission = cast(Any, SimpleNamespace(close=lambda: None))

    def run_trials(self) -> None: ...

    def plan(self, protocol: str) -> Any:
        return Plan("paper", True, pairs=6, block=1, warmup=0)

    def warm_up(self, count: int) -> None: ...

    def run_pair(self, size: int, number: int) -> None:
        self.timing.pairs.append((self._beside, 1.0))

    def reference_block(self) -> float:
        return self.after


@pytest.mark.parametrize(
    ("beside", "disturbed", "after", "why"),
    [
        (1.2, 0, 1.0, []),
        (3.0, 0, 1.0, ["slowed"]),
        (1.2, 1, 1.0, ["disturbed"]),
        (1.2, 0, 1.2, ["drift"]),
        (3.0, 2, 0.8, ["drift", "slowed", "disturbed"]),
    ],
)
def test_a_slowed_reference_is_not_steady(
    monkeypatch: pytest.MonkeyPatch, beside: float, disturbed: int, after: float, why: list[str]
) -> None:
    nothing: Callable[..., None] = lambda *args, **options: None  # noqa: E731
    monkeypatch.setattr(run.upstream, "run", nothing)
    score = run.Run.__new__(run.Run)
    score.bench = cast(Any, SimpleNamespace(target=SimpleNamespace(timed=True), settle=nothing))
    score.protocol_name, score.noise_floor = "paper", 0.1
    monkeypatch.setattr(score, "stage", nothing)
    monkeypatch.setattr(score, "_look_at", nothing)
    score._measure(_Slept(beside, disturbed, after))
    assert score.unsteady == why


class _Sleeper(Session):
    """A session whose submission takes `seconds` for each call; turns are stand-ins."""

    def __init__(self, seconds: float) -> None:
        self.timing, self.spent, self.next_call, self.limit = Timing(), 0.0, 0, 10.0
        self.cases = cast(Any, SimpleNamespace(call=lambda number: number))
        self.rng = random.Random(1)
        self._seconds = seconds
        self.submission = cast(Any, SimpleNamespace(letting_go=SimpleNamespace(fell=lambda: self.at_work)))

    at_work = False
    """Whether its frozen job is seen to work."""

    def run_reference(self, call: Any) -> Any:
        return SimpleNamespace(seconds=0.003, claims=[], outputs=[], inout=[], spans=[None])

    def run_submission(self, call: Any, limit: float) -> Any:
        return SimpleNamespace(seconds=self._seconds, claims=[], outputs=[], inout=[], spans=[None])

    def judge(self, *facts: Any) -> None: ...


@pytest.mark.parametrize(
    ("seconds", "warmup", "calls"),
    [
        (0.003, 500, 100),
        (9.9, 7, LEAST_PAIRS),
        (1.0, 61, LEAST_PAIRS),
        (0.11, 500, 5 * LEAST_PAIRS),
    ],
)
def test_a_submission_that_sleeps_does_not_hold_the_host(seconds: float, warmup: int, calls: int) -> None:
    session = _Sleeper(seconds)
    session.warm_up(500)
    session.run_pairs(Plan("paper", True, pairs=20, block=5, warmup=500))

    assert session.timing.warmup == warmup >= LEAST_WARMUP
    assert len(session.timing.solution_calls) == calls
    assert session.spent <= ENOUGH_S + (1 + LEAST_PAIRS) * seconds


def test_only_turns_of_the_reference_in_pairs_can_be_disturbed() -> None:
    """Beside those that no time is taken of, a file that dislikes its time would spoil the round."""
    session = _Sleeper(0.003)
    session.at_work = True
    session.warm_up(10)
    assert session.timing.disturbed == 0
    session.run_pairs(Plan("paper", True, pairs=6, block=2, warmup=10))
    assert session.timing.disturbed == 12


class _Rounds(run.Run):
    """A score of stand-ins: per round what it found unsteady and its speedup."""

    def __init__(self, *rounds: tuple[list[str], float], below: tuple[bool, ...] = ()) -> None:
        self._ahead, self._below = list(rounds), list(below)
        self.begun: list[float] = []
        self.discarded, self.unsteady = [], []
        self.noise_floor, self.protocol_name = 0.05, "paper"
        nothing: Callable[..., None] = lambda *args, **options: None  # noqa: E731
        self.bench = cast(
            Any, SimpleNamespace(stand_still=nothing, refill=nothing, target=SimpleNamespace(timed=True))
        )
        self.problem = load_problem("allreduce")
        self._close_jobs = nothing  # type: ignore[method-assign]

    def _build(self, extra: dict[str, bytes]) -> dict[str, bytes]:
        return {}

    def _new_cases(self) -> None: ...

    def _round(self, extra: dict[str, bytes], libraries: dict[str, bytes]) -> None:
        self.begun.append(run.time.monotonic())
        self.unsteady, speedup = self._ahead.pop(0)
        self.session = cast(Any, SimpleNamespace(timing=Timing(pairs=[(speedup, 1.0)] * 6)))

    def below_floor(self) -> bool:
        return bool(self._below) and self._below[len(self.begun) - 1]


@pytest.mark.parametrize(
    ("rounds", "count", "unsteady"),
    [
        ([([], 2.0)], 1, []),
        ([(["drift"], 1.0), ([], 2.0)], 2, []),  # the host's doing: what it read is worth nothing
        ([(["disturbed"], 1.0), ([], 2.0)], 2, ["rounds_differ"]),
        ([(["drift", "slowed"], 1.0), (["drift"], 3.0), ([], 2.0)], 3, ["rounds_differ"]),
        ([(["slowed"], 4.0), ([], 2.0)], 2, []),  # it lost by it
        ([(["disturbed"], 1.9), ([], 2.0)], 2, []),  # within a tenth
        ([(["drift"], 1.0)] * 3, 3, ["drift"]),
        ([(["disturbed"], 1.0)] * 3, 3, ["disturbed"]),
    ],
)
def test_no_file_chooses_the_round_that_counts(
    rounds: list[tuple[list[str], float]], count: int, unsteady: list[str]
) -> None:
    score = _Rounds(*[(list(why), speedup) for why, speedup in rounds])
    score._rounds()
    assert (len(score.begun), score.unsteady) == (count, unsteady)
    assert [row["why"] for row in score.discarded] == [why for why, _ in rounds[: count - 1]]


def test_unsteadiness_does_not_hold_a_host_for_three_long_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 1.0 + run.REPEATED_WITHIN_S])
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    score = _Rounds((["disturbed"], 1.0), ([], 2.0))
    score._rounds()
    assert (len(score.begun), score.unsteady) == (1, ["disturbed"])


def test_what_is_impossible_is_measured_again_however_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 1000.0, 1000.0, 2000.0])
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    score = _Rounds(([], 9.0), ([], 2.0), below=(True, False))
    score._rounds()
    assert (len(score.begun), score.unsteady) == (2, [])
    assert [row["why"] for row in score.discarded] == [["below_floor"]]
