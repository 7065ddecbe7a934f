"""What counts of stream mode and the gate, and how much is measured on cards: the rules, without a card."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.harness import cardprotocol
from evaluator.harness.cardjob import Batch, CardJob
from evaluator.harness.cardprotocol import (
    FEWEST,
    GATED,
    LANES,
    TIRED,
    CardSession,
    CardTiming,
    lanes_for,
    plan,
)
from evaluator.harness.cardslots import Staged, demand_cards
from evaluator.harness.errors import NoCards
from evaluator.harness.judge import Judge
from evaluator.harness.lettinggo import LettingGo
from evaluator.harness.protocol import ENOUGH_S, Plan, Timing, Verdicted

US = 1e-6


def timing(stream: list[tuple[float, float]], gate: list[tuple[float, float]]) -> CardTiming:
    """Figures in µs per call, with 3 µs of stream handshake and 300 µs of gate."""
    return CardTiming(
        LANES,
        stream=[(a * US, b * US) for a, b in stream],
        gate=[(a * US, b * US) for a, b in gate],
        stream_cost=3 * US,
        gate_cost=300 * US,
    )


def test_an_honest_time_is_the_same_by_both_clocks() -> None:
    card = timing([], [])
    assert card.ranked(103 * US, 400 * US) == pytest.approx(100 * US)


def test_a_file_that_merges_calls_in_stream_mode_gets_what_the_gate_says() -> None:
    card = timing([], [])
    assert card.ranked(13 * US, 400 * US) == pytest.approx(100 * US)


def test_a_host_that_launches_slowly_is_seen_in_stream_mode_and_told() -> None:
    card = timing([(103, 103)], [(340, 340)])
    assert card.ranked(103 * US, 340 * US) == pytest.approx(100 * US)
    assert card.launch_bound
    assert not timing([(103, 103)], [(390, 390)]).launch_bound


def test_the_handshake_is_never_more_than_half_of_a_stream_time() -> None:
    assert timing([], []).ranked(4 * US, 300 * US) == pytest.approx(2 * US)


def test_differences_that_an_early_word_could_make_are_ties() -> None:
    near = timing([(43, 41)], [(340, 338)])
    far = timing([(43, 33)], [(340, 330)])
    assert near.below_resolution
    assert not far.below_resolution


@pytest.mark.parametrize("protocol", ["quick", "profile", "paper"])
@pytest.mark.parametrize("seconds", [2e-5, 1e-3, 0.5])
def test_plans_have_pairs_enough_for_an_interval_and_end(protocol: str, seconds: float) -> None:
    made = plan(protocol, seconds, LANES)
    assert made.timed
    assert made.block == LANES
    assert 6 <= made.pairs <= 20
    assert made.warmup >= 2
    if protocol == "paper":
        assert made.pairs >= 10
    if seconds < 1e-3:
        assert made.pairs == (20 if protocol == "paper" else 10)


def test_values_that_take_long_to_make_count_for_the_plan() -> None:
    assert plan("quick", 1e-4, LANES, 1e-4).pairs == 10
    assert plan("quick", 1e-4, LANES, 0.05).pairs == 6
    slow = plan("paper", 1e-4, LANES, 0.05)
    assert (slow.pairs, slow.warmup) == (10, 2)


def test_check_times_nothing() -> None:
    assert not plan("check", 1.0, LANES).timed


def test_large_calls_have_fewer_lanes_but_never_none() -> None:
    assert lanes_for(1 << 20, 1 << 20) == LANES
    assert lanes_for(1 << 24, 1 << 20) == 16
    assert lanes_for(1 << 27, 1 << 20) == GATED
    assert lanes_for(1 << 28, 1 << 20) == GATED
    assert lanes_for(1 << 29, 1 << 20) == FEWEST
    assert lanes_for(1 << 29, 1 << 29) == 4
    assert lanes_for(1 << 34, 1 << 34) == 1


def test_figures_are_shown_per_side_in_milliseconds() -> None:
    card = timing([(103, 53)], [(400, 350)])
    card.device.append((None, 50 * US))
    shown = card.shown()
    assert shown["reference_stream_ms"] == pytest.approx(0.103)
    assert shown["solution_gate_ms"] == pytest.approx(0.350)
    assert shown["reference_events_ms"] is None
    assert shown["solution_events_ms"] == pytest.approx(0.05)
    assert shown["gated"] == GATED


@pytest.mark.parametrize("target", ["h100x4", "h200x4", "b200x4", "h200x2", "h200x1"])
def test_a_host_without_the_targets_cards_says_which_are_missing(target: str) -> None:
    with pytest.raises(NoCards, match=r"this host has 0 cards; cards? 0.* missing"):
        Judge(target)


def test_a_card_that_is_there_is_not_missed() -> None:
    demand_cards([])
    with pytest.raises(NoCards, match="cards 3, 7 are missing"):
        demand_cards([7, 3])


def test_the_speedup_on_the_card_leaves_launches_out() -> None:
    card = timing([(203, 203)] * 6, [(340, 320)] * 6)
    found = card.on_the_card()
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert card.shown()["on_the_card"]["value"] == pytest.approx(2.0)
    assert timing([(5, 5)], [(299, 320)]).on_the_card() is None


class Session(CardSession):
    """A session whose empty turns take what a test says."""

    def __init__(self, costs: list[float]) -> None:
        self.costs = costs
        self.lanes = LANES
        self.reference = None
        self._unread = []
        self.card = timing([], [])

    def _new_calls(self, count: int) -> tuple[list[Any], Staged]:
        return [None] * count, []

    def _batch(self, job: Any, kind: str, calls: list[Any], staged: Staged, *, empty: bool = False) -> Batch:
        assert (kind, empty) == ("gate", True)
        return Batch(self.costs.pop(0) * US)


def test_the_reference_waits_until_the_cards_are_at_rest() -> None:
    session = Session([2400, 900, 310])
    session._await_rest()
    assert session.costs == []
    assert session.card.restless == 2


def test_kernels_that_do_not_end_are_a_rejection() -> None:
    session = Session([2400] * 5)
    with pytest.raises(Verdicted) as caught:
        session._await_rest()
    assert caught.value.found.code == "rejected.background"


class Planned(Session):
    """A session whose reference takes 1 ms a call, and a hundred times that while a kernel is on its card."""

    submission = None

    def _batch(self, job: Any, kind: str, calls: list[Any], staged: Staged, *, empty: bool = False) -> Batch:
        if empty:
            return super()._batch(job, kind, calls, staged, empty=empty)
        return Batch(100e-3 if self.costs else 1e-3)


def test_a_kernel_that_is_left_running_after_the_trials_takes_no_pairs_away() -> None:
    assert Planned([2400, 2400, 310]).plan("paper").pairs == 20
    with pytest.raises(Verdicted) as caught:
        Planned([2400] * 5).plan("paper")
    assert caught.value.found.code == "rejected.background"


class Blocks(Session):
    """A session whose reference takes what a test says, µs per call: one stream and one gate figure per block."""

    def __init__(self) -> None:
        super().__init__([])
        self._block = None
        self.takes: dict[str, float] = {}

    def block(self, stream: float, gate: float) -> float:
        self.takes = {"stream": stream, "gate": gate}
        return self.reference_block()

    def _batch(self, job: Any, kind: str, calls: list[Any], staged: Staged, *, empty: bool = False) -> Batch:
        return Batch(self.takes[kind] * US)


@pytest.mark.parametrize("stream", [60, 100])
def test_a_reference_that_waits_for_its_launches_is_steady_when_the_cards_are(stream: float) -> None:
    session = Blocks()
    cost = session.card.gate_cost / US
    before = session.block(stream=stream, gate=cost + 40)
    assert before == pytest.approx(40 * US)
    assert session.block(stream=2 * stream, gate=cost + 42) / before == pytest.approx(1.05)


def test_what_the_clock_of_cards_cannot_tell_is_no_drift() -> None:
    session = Blocks()
    cost = session.card.gate_cost / US
    session.timing = Timing(card=session.card)
    session.timing.before = session.block(stream=60, gate=cost + 10)
    for gate, why in ((12.5, []), (15, ["drift"]), (5.5, ["drift"])):
        session.timing.after = session.block(stream=60, gate=cost + gate)
        assert session.timing.unsteady(0.10) == why


def test_the_cost_and_the_kind_of_the_first_block_hold_for_the_second() -> None:
    session = Blocks()
    cost = session.card.gate_cost / US
    before = session.block(stream=100, gate=cost + 40)
    session.card.gate_cost *= 0.9
    assert session.block(stream=50, gate=cost + 40) == pytest.approx(before)


def test_a_reference_that_keeps_its_card_busy_is_steady_by_its_stream_time() -> None:
    session = Blocks()
    cost = session.card.gate_cost / US
    before = session.block(stream=1000, gate=cost + 990)
    assert before == pytest.approx(1000 * US)
    assert session.block(stream=1200, gate=cost + 990) / before == pytest.approx(1.2)


class _Slow(CardJob):
    """A job whose calls take so long by a clock that nobody waits for."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.clock, self.seconds = clock, seconds
        self.sizes: list[int] = []

    def close(self) -> None: ...

    def stream(self, calls: list[Any], *args: Any, **options: Any) -> Batch:
        self.sizes.append(len(calls))
        self.clock[0] += self.seconds * len(calls)
        return Batch(self.seconds)

    gate = stream


class _Paired(CardSession):
    """A session of two stand-ins; what is compared and how the cards come to rest is left out."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.timing, self.spent, self.limit, self.rng = Timing(), 0.0, 30.0, random.Random(1)
        self.reference, self.submission = _Slow(clock, 1e-4), _Slow(clock, seconds)
        self.submission.letting_go = LettingGo(lambda: None)
        self.lanes, self.next_call, self.built_late = LANES, 0, False
        self.card = timing([], [])
        self._should_stop = None

    def _new_calls(self, count: int) -> tuple[list[Any], Staged]:
        return [SimpleNamespace(packed=None)] * count, [[]] * count

    def _await_rest(self) -> None: ...

    def _compare(self, *facts: Any) -> None: ...

    def measure_costs(self) -> None: ...


@pytest.mark.parametrize(
    ("seconds", "warmup", "pairs", "calls"),
    [
        (1e-4, 10 * LANES, 20, 20 * (2 * 16 + GATED)),
        (7.0, LANES + TIRED, 6, 6 * 3 * TIRED),
        (0.1, 10 * LANES, 7, 6 * (2 * 16 + GATED) + 16 + GATED + TIRED),
    ],
)
def test_a_submission_that_sleeps_does_not_hold_the_cards(
    monkeypatch: pytest.MonkeyPatch, seconds: float, warmup: int, pairs: int, calls: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(cardprotocol.time, "perf_counter", lambda: clock[0])
    session = _Paired(clock, seconds)
    session.warm_up(10)
    session.run_pairs(Plan("paper", True, pairs=20, block=LANES, warmup=10))

    assert session.timing.warmup == warmup
    assert len(session.card.stream) == len(session.card.gate) == pairs
    assert session.card.calls == calls
    assert session.spent < ENOUGH_S + seconds * (LANES + GATED + (1 + pairs) * 3 * TIRED)
