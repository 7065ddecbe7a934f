"""The 95 % interval of a speedup holds the truth as often as it says, on noise that a machine really made.

`tests/data/noise_cpu4.json` holds times of one call of the reference, thousands in a row, measured by the
judge (`tests/bench/record_noise.py`): they drift and depend on one another. Each simulation cuts a stretch
out of a series, deals it to reference and solution as the protocol does, and makes the solution faster by
a known factor.

What stays with one of the two jobs through a whole run is not in these series, since one job made them;
`tests/bench/bench_aa.py` measures two jobs, and its summary says how far pairs of one run depend on each other.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from statistics import NormalDist, fmean, stdev

import pytest

from evaluator.harness.protocol import plan
from evaluator.harness.stats import order_interval, speedup

DATA = Path(__file__).resolve().parents[1] / "data" / "noise_cpu4.json"
SERIES = {slug: row["net_us"] for slug, row in json.loads(DATA.read_text())["series"].items()}
SIMULATIONS = 4000
LEAST, MOST = 0.93, 0.98

Pairs = list[tuple[float, float]]


def autocorrelation(series: list[float], lag: int) -> float:
    logs = [math.log(value) for value in series]
    mean = fmean(logs)
    away = [value - mean for value in logs]
    return sum(a * b for a, b in zip(away, away[lag:], strict=False)) / sum(a * a for a in away)


def drifting(seed: int, count: int = 3000, memory: float = 0.97) -> list[float]:
    """A series far more dependent than any we measured: log-normal, each value mostly the one before."""
    rng = random.Random(seed)
    level, series = 0.0, []
    for _ in range(count):
        level = memory * level + rng.gauss(0, 0.1)
        series.append(1000 * math.exp(level + rng.gauss(0, 0.02)))
    return series


def deal(series: list[float], start: int, pairs: int, block: int, factor: float, rng: random.Random) -> Pairs:
    """Blocks in a row, two to a pair, in random order per pair, as `Session.run_pair` deals them."""
    dealt, at = [], start
    for _ in range(pairs):
        first, second = series[at : at + block], series[at + block : at + 2 * block]
        at += 2 * block
        reference, solution = (first, second) if rng.random() < 0.5 else (second, first)
        dealt.append((fmean(reference), fmean(solution) / factor))
    return dealt


def coverage(series: list[float], protocol: str, factor: float, seed: int) -> float:
    """Share of simulated scores whose interval holds the true factor."""
    rng = random.Random(seed)
    planned = plan(protocol, 0.02, rng)
    need = 2 * planned.pairs * planned.block
    held = 0
    for _ in range(SIMULATIONS):
        start = rng.randrange(len(series) - need + 1)
        found = speedup(deal(series, start, planned.pairs, planned.block, factor, rng))
        held += found.low <= factor <= found.high
    return held / SIMULATIONS


def test_the_recorded_noise_is_noise_of_a_machine() -> None:
    assert len(SERIES) >= 3
    for slug, series in SERIES.items():
        assert len(series) >= 2000, slug
        assert stdev(math.log(value) for value in series) > 0.02, slug
    strongest = max(autocorrelation(series, lag) for series in SERIES.values() for lag in range(1, 6))
    assert strongest > 0.1, "a series whose values do not depend on each other tests nothing"


@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("protocol", ["paper", "quick"])
@pytest.mark.parametrize("slug", [*SERIES, "drifting"])
def test_the_interval_covers_what_it_says(slug: str, protocol: str, factor: float) -> None:
    series = SERIES.get(slug) or drifting(7)
    found = coverage(series, protocol, factor, seed=20261129)
    assert LEAST <= found <= MOST, f"{found:.3f}"


def test_a_fixed_order_would_not_cover_under_a_trend() -> None:
    """What the random order is for, and proof that this file can fail: A before B on a slowing machine."""

    class Fixed(random.Random):
        def random(self) -> float:
            return 0.0

    series = [1000 * math.exp(0.002 * index) for index in range(1000)]
    held = 0
    for start in range(0, 800, 4):
        found = speedup(deal(series, start, 20, 5, 1.0, Fixed()))
        held += found.low <= 1.0 <= found.high
    assert held == 0


def test_a_normal_interval_over_single_calls_would_not_cover() -> None:
    """Taking the calls for independent, as a t-interval over all of them does, is too narrow."""
    z = NormalDist().inv_cdf(0.975)
    rng, series, held = random.Random(3), drifting(7), 0
    for _ in range(1000):
        start = rng.randrange(len(series) - 200)
        one, other = series[start : start + 100], series[start + 100 : start + 200]
        gap = fmean(map(math.log, one)) - fmean(map(math.log, other))
        error = math.sqrt(stdev(map(math.log, one)) ** 2 / 100 + stdev(map(math.log, other)) ** 2 / 100)
        held += abs(gap) <= z * error
    assert held < 700


@pytest.mark.parametrize(("count", "k"), [(1, 1), (5, 1), (6, 1), (9, 2), (20, 6), (100, 40)])
def test_order_statistics_are_those_of_the_binomial(count: int, k: int) -> None:
    found, covered = order_interval(count)
    assert found == k
    inside = sum(math.comb(count, i) for i in range(k, count - k + 1)) * 0.5**count
    assert covered == pytest.approx(inside if count > 1 else 0.0)
    assert covered >= 0.95 or k == 1


def test_too_few_pairs_say_how_little_their_interval_is_worth() -> None:
    found = speedup([(2.0, 1.0), (2.2, 1.0)])
    assert found.coverage == pytest.approx(0.5)
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.2))
    with pytest.raises(ValueError, match="no pair"):
        speedup([])


def test_the_value_lies_in_its_interval_and_inverts() -> None:
    rng = random.Random(5)
    for _ in range(200):
        pairs = [(rng.uniform(1, 9), rng.uniform(1, 9)) for _ in range(rng.randrange(1, 30))]
        found = speedup(pairs)
        assert found.low <= found.value <= found.high
        turned = speedup([(b, a) for a, b in pairs])
        assert turned.value == pytest.approx(1 / found.value)
        assert turned.low == pytest.approx(1 / found.high)


@pytest.mark.parametrize("protocol", ["quick", "profile"])
@pytest.mark.parametrize(("t_reference", "pairs"), [(0.0005, 20), (0.0375, 20), (0.05, 15), (0.2, 6)])
def test_feedback_has_twenty_pairs_where_three_seconds_allow_them(
    protocol: str, t_reference: float, pairs: int
) -> None:
    """Of 6 pairs the 95 % interval is the whole range: one disturbed pair decides it."""
    found = plan(protocol, t_reference, random.Random(1))
    assert (found.pairs, found.block) == (pairs, 2)
