"""What a run achieved over a track: pass@k, fast_p, roof_u, mean speedup, categories, climb. Pure functions.

Every page, chart, API answer and export takes its figures from here, so a figure has one definition.

- A *track* is the full list of problems. A problem without a sample counts as failed, never as absent.
- A *speedup* is reference time divided by solution time (above 1 is faster); a *utilisation* is the
  roofline time divided by the solution time, 0..1 for an honest roofline.
- *good* is what a metric asks of one sample: correct, correct and faster than ``p``, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.ranking import is_speedup


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged sample of one problem: what the metrics need and nothing else."""

    problem: str
    sample: int
    correct: bool
    speedup: float | None = None
    utilisation: float | None = None
    resolved: bool = True


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """Geometric-mean speedup and what it was taken over.

    ``solved`` is the mean over the problems with at least one correct sample (None without any);
    ``whole`` counts each unsolved problem as 1.0, as if the reference had been kept, so that it
    compares entrants that solved different problems. ``counted`` and ``track`` are the two counts.
    """

    solved: float | None
    whole: float | None
    counted: int
    track: int


# --- pass@k and its relatives -------------------------------------------------------------------


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of ``k`` samples drawn without replacement from ``n`` is good.

    ``c`` of the ``n`` are good. Raises ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n:
        raise ValueError(f"good samples must be between 0 and n={n}, got {c}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and n={n}, got {k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def is_correct(sample: Sample) -> bool:
    """The ``good`` of pass@k."""
    return sample.correct


def faster_than(p: float) -> Callable[[Sample], bool]:
    """The ``good`` of fast_p: correct and strictly faster than ``p`` times the reference.

    ``p = 0`` is plain correctness: a correct sample counts even when it carries no timing.
    """

    def good(sample: Sample) -> bool:
        if p <= 0:
            return sample.correct
        return sample.correct and sample.speedup is not None and sample.speedup > p

    return good


def utilises(u: float) -> Callable[[Sample], bool]:
    """The ``good`` of roof_u: correct and at least ``u`` of the roofline."""

    def good(sample: Sample) -> bool:
        if u <= 0:
            return sample.correct
        return sample.correct and sample.utilisation is not None and sample.utilisation >= u

    return good


def good_counts(
    samples: Iterable[Sample], track: Sequence[str], n: int, good: Callable[[Sample], bool]
) -> dict[str, int]:
    """Good samples per problem of the track, 0 where none was sent.

    Samples of other problems are ignored. Raises ValueError when a problem holds more than ``n``
    samples or the same sample twice, since either would inflate every metric.
    """
    counts = dict.fromkeys(track, 0)
    seen: set[tuple[str, int]] = set()
    per_problem = dict.fromkeys(track, 0)
    for sample in samples:
        if sample.problem not in counts:
            continue
        key = (sample.problem, sample.sample)
        if key in seen:
            raise ValueError(f"sample {sample.sample} of {sample.problem} appears twice")
        seen.add(key)
        per_problem[sample.problem] += 1
        if per_problem[sample.problem] > n:
            raise ValueError(f"{sample.problem} holds more than the {n} samples of its run")
        counts[sample.problem] += int(good(sample))
    return counts


def metric_values(counts: Mapping[str, int], n: int, k: int) -> list[float]:
    """One value per problem, in the order of ``counts``: what a mean or a bootstrap is taken over."""
    return [pass_at_k(n, c, k) for c in counts.values()]


def metric_at_k(
    samples: Iterable[Sample],
    track: Sequence[str],
    *,
    n: int,
    k: int,
    good: Callable[[Sample], bool] = is_correct,
) -> float:
    """pass@k, fast_p@k or roof_u@k (by ``good``) as the mean over the whole track; 0.0 if empty."""
    values = metric_values(good_counts(samples, track, n, good), n, k)
    return math.fsum(values) / len(values) if values else 0.0


def curve(
    samples: Sequence[Sample],
    track: Sequence[str],
    thresholds: Sequence[float],
    *,
    n: int,
    k: int,
    good_at: Callable[[float], Callable[[Sample], bool]],
) -> list[float]:
    """The metric at each threshold; never rises when the thresholds ascend."""
    return [metric_at_k(samples, track, n=n, k=k, good=good_at(t)) for t in thresholds]


def log_thresholds(low: float = 0.1, high: float = 10.0, steps: int = 41) -> list[float]:
    """Evenly spaced on a log axis, both ends included exactly; 1.0 is among the default ones."""
    if not 0 < low < high or steps < 2:
        raise ValueError("thresholds need 0 < low < high and at least two steps")
    ratio = math.log(high / low)
    inner = [low * math.exp(ratio * i / (steps - 1)) for i in range(1, steps - 1)]
    return [low, *(round(value, 12) for value in inner), high]


def unit_thresholds(steps: int = 41) -> list[float]:
    """Evenly spaced from 0 to 1, both included."""
    if steps < 2:
        raise ValueError("a curve needs at least two steps")
    return [i / (steps - 1) for i in range(steps)]


# --- speedup over a track -----------------------------------------------------------------------


def best_speedups(samples: Iterable[Sample], track: Sequence[str]) -> dict[str, float]:
    """Highest speedup of a correct, timed sample per problem; unsolved problems are left out.

    A sample whose time was resolved stands before one whose was not, even where it is slower.
    """
    wanted = set(track)
    best: dict[str, tuple[bool, float]] = {}
    for sample in samples:
        if sample.problem not in wanted or not sample.correct or not is_speedup(sample.speedup):
            continue
        assert sample.speedup is not None
        known = best.get(sample.problem, (False, 0.0))
        best[sample.problem] = max((sample.resolved, sample.speedup), known)
    return {problem: speedup for problem, (_, speedup) in best.items()}


def geometric_mean_speedup(samples: Iterable[Sample], track: Sequence[str]) -> GeometricMean:
    """Geometric mean of the best correct speedup per problem.

    A correct sample that is slower than the reference counts with its own figure below 1; a failed
    problem is left out of ``solved`` and is 1.0 in ``whole``.
    """
    logs = [math.log(value) for value in best_speedups(samples, track).values()]
    total = math.fsum(logs)
    return GeometricMean(
        solved=math.exp(total / len(logs)) if logs else None,
        whole=math.exp(total / len(track)) if track else None,
        counted=len(logs),
        track=len(track),
    )


# --- why a sample failed, and how agents climb --------------------------------------------------

CATEGORIES = (
    "faster",
    "slower",
    "incorrect",
    "contract",
    "build",
    "runtime",
    "timeout",
    "memory",
    "rejected",
    "missing",
)
"""All categories in the order in which charts stack them."""

_BY_VERDICT = {
    "incorrect": "incorrect",
    "contract_error": "contract",
    "build_error": "build",
    "runtime_error": "runtime",
    "timeout": "timeout",
    "out_of_memory": "memory",
    "rejected": "rejected",
}


def category(verdict: str, speedup: float | None) -> str:
    """Category of one finished sample; ``missing`` for a fault of ours, which counts for nobody."""
    if verdict == "correct":
        return "faster" if is_speedup(speedup) and speedup is not None and speedup > 1 else "slower"
    return _BY_VERDICT.get(verdict, "missing")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an agent at one problem."""

    problem: str
    step: int
    correct: bool
    speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Climb:
    """Shares of the track solved, and solved faster than the reference, by the end of a step."""

    step: int
    solved: float
    fast_1: float


def climb(steps: Iterable[Step], track: Sequence[str], last: int = 19) -> list[Climb]:
    """Best so far by step 0..``last``: never falls, and a problem never tried stays unsolved."""
    wanted = set(track)
    solved_at: dict[str, int] = {}
    fast_at: dict[str, int] = {}
    for step in steps:
        if step.problem not in wanted or not step.correct:
            continue
        solved_at[step.problem] = min(step.step, solved_at.get(step.problem, step.step))
        if step.speedup is not None and step.speedup > 1:
            fast_at[step.problem] = min(step.step, fast_at.get(step.problem, step.step))
    size = max(len(track), 1)
    return [
        Climb(
            at,
            sum(first <= at for first in solved_at.values()) / size,
            sum(first <= at for first in fast_at.values()) / size,
        )
        for at in range(last + 1)
    ]
