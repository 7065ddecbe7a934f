"""Ranking rules against hand-computed tables, an independent brute force and properties."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import bands, metrics, ranking
from leaderboard.metrics import Sample


@dataclass(frozen=True)
class Row:
    score_id: int
    entrant_id: int
    speedup: float
    order_key: float = 0.0
    resolved: bool = True


# --- golden tables, computed by hand -------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (1, 0, 1, 0.0),
        (1, 1, 1, 1.0),
        (3, 1, 1, 1 / 3),
        (3, 1, 2, 2 / 3),  # 1 - C(2,2)/C(3,2) = 1 - 1/3
        (3, 2, 2, 1.0),  # one bad sample only: two draws cannot both be bad
        (5, 2, 3, 0.9),  # 1 - C(3,3)/C(5,3) = 1 - 1/10
        (10, 3, 5, 1 - 21 / 252),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, expected: float) -> None:
    assert metrics.pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4), (0, 0, 1)])
def test_pass_at_k_refuses_nonsense(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="must be between"):
        metrics.pass_at_k(n, c, k)


TRACK = ("a", "b", "c", "d")
TABLE = (
    Sample("a", 0, True, 2.0, 0.5),
    Sample("a", 1, True, 0.5, 0.1),
    Sample("b", 0, True, 1.0, 0.3),
    Sample("b", 1, False),
    Sample("c", 0, False),
    Sample("c", 1, False),
    # d was never sent: it counts as failed
)


@pytest.mark.parametrize(
    ("k", "good", "expected"),
    [
        (1, metrics.is_correct, (1 + 0.5 + 0 + 0) / 4),
        (2, metrics.is_correct, (1 + 1 + 0 + 0) / 4),
        (1, metrics.faster_than(0), 0.375),
        (1, metrics.faster_than(1), 0.5 / 4),  # b ties at exactly 1.0: not faster
        (2, metrics.faster_than(1), 0.25),
        (1, metrics.faster_than(0.4), 0.375),
        (1, metrics.utilises(0.3), (0.5 + 0.5) / 4),  # at least u: b's 0.3 counts
        (2, metrics.utilises(0.31), 0.25),
    ],
)
def test_metrics_of_a_small_table(k, good, expected) -> None:
    assert metrics.metric_at_k(TABLE, TRACK, n=2, k=k, good=good) == pytest.approx(expected)


def test_published_pass_at_1_is_reproduced() -> None:
    track = [f"p{i}" for i in range(87)]
    samples = [Sample(f"p{i}", 0, i < 28, 1.5 if i < 22 else 0.9) for i in range(60)]
    assert round(metrics.metric_at_k(samples, track, n=1, k=1), 3) == 0.322  # 28/87
    fast = metrics.metric_at_k(samples, track, n=1, k=1, good=metrics.faster_than(1))
    assert round(fast, 3) == 0.253  # 22/87


def test_geometric_mean_counts_slow_ones_and_names_its_base() -> None:
    result = metrics.geometric_mean_speedup(
        [
            Sample("a", 0, True, 4.0),
            Sample("a", 1, True, 2.0),
            Sample("b", 0, True, 0.25),
            Sample("c", 0, False, 100.0),
            Sample("elsewhere", 0, True, 9.0),
        ],
        TRACK,
    )
    assert (result.counted, result.track) == (2, 4)
    assert result.solved == pytest.approx(1.0)  # sqrt(4 * 1/4)
    assert result.whole == pytest.approx(1.0)
    only_a = metrics.geometric_mean_speedup([Sample("a", 0, True, 16.0)], TRACK)
    assert only_a.solved == pytest.approx(16.0)
    assert only_a.whole == pytest.approx(2.0)  # 16 ** (1/4)


def test_geometric_mean_of_nothing_is_nothing() -> None:
    result = metrics.geometric_mean_speedup([Sample("a", 0, True, None)], TRACK)
    assert (result.solved, result.counted) == (None, 0)


def test_wilson_by_hand() -> None:
    band = bands.wilson(8, 10)
    assert (band.value, round(band.low, 4), round(band.high, 4)) == (0.8, 0.4902, 0.9433)
    zero = bands.wilson(0, 87)
    assert zero.low == 0.0
    assert round(zero.high, 4) == 0.0423
    assert bands.wilson(0, 0) == bands.Band(0.0, 0.0, 1.0)


def test_duplicate_or_surplus_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        metrics.metric_at_k([Sample("a", 0, True), Sample("a", 0, True)], TRACK, n=2, k=1)
    with pytest.raises(ValueError, match="more than"):
        metrics.metric_at_k([Sample("a", i, True) for i in range(3)], TRACK, n=2, k=1)


def test_ties_are_held_against_the_first_of_the_group() -> None:
    rows = [Row(i, i, s) for i, s in enumerate([2.00, 1.85, 1.75, 1.00])]
    # 2.00/1.85 = 1.081 ties; 2.00/1.75 = 1.143 does not, though 1.85/1.75 would
    assert ranking.places(rows, [0.1] * 4) == [1, 1, 3, 4]
    assert ranking.places(rows, [0.0] * 4) == [1, 2, 3, 4]
    assert ranking.places(rows, [0.0, 0.0, 0.2, 0.0]) == [1, 2, 2, 4]
    assert ranking.places([], []) == []


def test_places_refuses_unsorted_rows_and_missing_floors() -> None:
    with pytest.raises(ValueError, match="order"):
        ranking.places([Row(1, 1, 1.0), Row(2, 2, 2.0)], [0.1, 0.1])
    with pytest.raises(ValueError, match="noise floor"):
        ranking.places([Row(1, 1, 1.0)], [])


def test_best_and_latest_policies_differ() -> None:
    rows = [Row(1, 7, 3.0, 10.0), Row(2, 7, 1.0, 20.0), Row(3, 8, 2.0, 5.0)]
    assert [r.score_id for r in ranking.one_per_entrant(rows)] == [1, 3]
    assert [r.score_id for r in ranking.one_per_entrant(rows, "latest")] == [3, 2]


@pytest.mark.parametrize(
    ("verdict", "speedup", "expected"),
    [
        ("correct", 1.01, "faster"),
        ("correct", 1.0, "slower"),
        ("correct", None, "slower"),
        ("incorrect", 9.0, "incorrect"),
        ("contract_error", None, "contract"),
        ("build_error", None, "build"),
        ("runtime_error", None, "runtime"),
        ("timeout", None, "timeout"),
        ("out_of_memory", None, "memory"),
        ("rejected", 50.0, "rejected"),
        ("infra_error", None, "missing"),
    ],
)
def test_categories(verdict: str, speedup: float | None, expected: str) -> None:
    assert metrics.category(verdict, speedup) == expected
    assert expected in metrics.CATEGORIES


def test_climb_is_best_so_far() -> None:
    steps = [
        metrics.Step("a", 0, False),
        metrics.Step("a", 2, True, 0.5),
        metrics.Step("a", 3, True, 2.0),
        metrics.Step("a", 4, False),
        metrics.Step("b", 1, True, 1.5),
    ]
    got = metrics.climb(steps, ("a", "b", "c", "d"), last=4)
    assert [c.solved for c in got] == [0, 0.25, 0.5, 0.5, 0.5]
    assert [c.fast_1 for c in got] == [0, 0.25, 0.25, 0.5, 0.5]


def test_log_thresholds_hold_both_ends_and_one() -> None:
    axis = metrics.log_thresholds()
    assert (axis[0], axis[-1]) == (0.1, 10.0)
    assert 1.0 in axis
    assert axis == sorted(axis)


# --- independent brute force and properties ------------------------------------------------------


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_drawn_subsets(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert metrics.pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


speedups = st.floats(0.01, 100, allow_nan=False)
problems = st.sampled_from(TRACK)


@st.composite
def tables(draw: st.DrawFn) -> list[Sample]:
    keys = draw(st.lists(st.tuples(problems, st.integers(0, 3)), unique=True, max_size=16))
    return [
        Sample(p, s, draw(st.booleans()), draw(st.none() | speedups), draw(st.none() | st.floats(0, 1)))
        for p, s in keys
    ]


@given(tables(), st.floats(0, 10), st.integers(1, 4), st.randoms())
def test_fast_p_by_brute_force(table, p, k, shuffler) -> None:
    total = 0.0
    for problem in TRACK:
        good = [
            s.correct and (p == 0 or (s.speedup is not None and s.speedup > p))
            for s in table
            if s.problem == problem
        ]
        good += [False] * (4 - len(good))
        draws = list(itertools.combinations(good, k))
        total += sum(map(any, draws)) / len(draws)
    shuffled = list(table)
    shuffler.shuffle(shuffled)
    got = metrics.metric_at_k(shuffled, TRACK, n=4, k=k, good=metrics.faster_than(p))
    assert got == pytest.approx(total / len(TRACK))


@given(tables(), st.integers(1, 4))
def test_curves_never_rise_and_start_at_pass(table, k) -> None:
    axis = [0.0, *metrics.log_thresholds(steps=9)]
    fast = metrics.curve(table, TRACK, axis, n=4, k=k, good_at=metrics.faster_than)
    roof = metrics.curve(table, TRACK, metrics.unit_thresholds(9), n=4, k=k, good_at=metrics.utilises)
    assert fast[0] == roof[0] == metrics.metric_at_k(table, TRACK, n=4, k=k)
    assert all(a >= b for a, b in itertools.pairwise(fast))
    assert all(a >= b for a, b in itertools.pairwise(roof))


@given(st.integers(1, 300), st.data())
def test_wilson_holds_its_point_and_stays_in_range(n: int, data: st.DataObject) -> None:
    band = bands.wilson(data.draw(st.integers(0, n)), n)
    assert 0 <= band.low <= band.value <= band.high <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_bootstrap_is_repeatable_and_holds_the_mean(values: list[float]) -> None:
    band = bands.bootstrap(values, resamples=50)
    assert band == bands.bootstrap(values, resamples=50)
    assert min(values) - 1e-9 <= band.low <= band.value <= band.high <= max(values) + 1e-9


def test_bootstrap_covers_about_as_often_as_it_claims() -> None:
    import random

    source = random.Random(5)
    hits = 0
    for trial in range(200):
        values = [float(source.random() < 0.3) for _ in range(87)]
        band = bands.bootstrap(values, resamples=200, seed=trial)
        hits += band.low <= 0.3 <= band.high
    assert 180 <= hits <= 199


rows_strategy = st.lists(st.tuples(st.integers(1, 5), speedups, st.integers(0, 3)), max_size=20).map(
    lambda raw: [Row(i, e, s, float(t)) for i, (e, s, t) in enumerate(raw)]
)


@given(rows_strategy, st.randoms(), st.sampled_from(["best", "latest"]))
def test_one_per_entrant_ignores_arrival_order(rows, shuffler, policy) -> None:
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    got = ranking.one_per_entrant(rows, policy)
    assert got == ranking.one_per_entrant(shuffled, policy)
    assert {r.entrant_id for r in got} == {r.entrant_id for r in rows}
    for row in got:
        own = [r for r in rows if r.entrant_id == row.entrant_id]
        if policy == "best":
            assert row.speedup == max(r.speedup for r in own)
        else:
            assert row.order_key == max(r.order_key for r in own)


@given(rows_strategy, st.floats(0, 0.5))
def test_places_are_competition_places_within_the_floor(rows, floor) -> None:
    ordered = ranking.one_per_entrant(rows)
    got = ranking.places(ordered, [floor] * len(ordered))
    for index, place in enumerate(got):
        leader = ordered[place - 1]
        assert place <= index + 1
        assert leader.speedup <= ordered[index].speedup * (1 + floor) * (1 + 1e-12)
        if place == index + 1 and index:
            previous_leader = ordered[got[index - 1] - 1]
            assert previous_leader.speedup > ordered[index].speedup * (1 + floor)


@given(tables())
def test_geometric_mean_by_brute_force(table) -> None:
    best = {}
    for s in table:
        if s.correct and s.speedup is not None:
            best[s.problem] = max(best.get(s.problem, 0), s.speedup)
    result = metrics.geometric_mean_speedup(table, TRACK)
    assert result.counted == len(best)
    if best:
        assert result.solved == pytest.approx(math.prod(best.values()) ** (1 / len(best)))
        assert result.whole == pytest.approx(math.prod(best.values()) ** (1 / len(TRACK)))


# --- measurements that cannot be told apart --------------------------------------------------------

flags = st.lists(st.sampled_from(["below_resolution", "noisy", "builds_late"]), max_size=3)


@given(speedups, flags)
def test_what_was_not_resolved_is_never_faster(speedup: float, raised: list[str]) -> None:
    counted = ranking.counted_speedup(speedup, raised)
    if {"below_resolution", "noisy"} & set(raised):
        assert counted == min(speedup, 1.0)
        assert not metrics.faster_than(1.0)(Sample("a", 0, True, counted))
        assert metrics.category("correct", counted) == "slower"
    else:
        assert counted == speedup


@given(rows_strategy, st.randoms())
def test_an_entrants_best_is_a_resolved_one_if_there_is_any(rows: list[Row], shuffler) -> None:
    mixed = [replace(row, resolved=row.score_id % 2 == 0) for row in rows]
    shuffler.shuffle(mixed)
    for best in ranking.one_per_entrant(mixed):
        own = [row for row in mixed if row.entrant_id == best.entrant_id]
        sure = [row.speedup for row in own if row.resolved]
        assert best.resolved == bool(sure)
        assert best.speedup == max(sure or [row.speedup for row in own])
