"""What a run achieved on a target at a size: figures computed once per change, and stored.

A reader takes a summary as it is stored; only one that is *due* is computed again first. Triggers mark a
summary due in the very transaction that changes something it was taken over, the track included
(triggers.py), and another protocol version makes all of them due. So a row that was disqualified, hidden
or made stale is out of the figures at once, whoever did it and however.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, Max, OuterRef, Q, QuerySet, When
from django.utils import timezone

from leaderboard import figure_cells, metrics, ranking
from leaderboard.bands import Band, bootstrap
from leaderboard.models import RunSummary, Score
from leaderboard.querysets import RULES
from portal.submissions.models import ModelRun, Submission
from portal.submissions.states import FINAL, LIVE
from problems.models import Problem, Target

KS = (1, 3, 5, 10)
RESAMPLES = 300
DIGITS = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One judged sample of a run as the figures need it."""

    score_id: int
    problem: str
    sample: int
    step: int
    verdict: str
    counts: bool
    speedup: float | None
    low: float | None
    high: float | None
    utilisation: float | None
    provisional: bool
    resolved: bool
    submission_id: str
    mechanisms: tuple[str, ...]
    last: bool = True


def track() -> list[str]:
    """Slugs of the problems that count, in the order of their numbers."""
    return list(Problem.objects.active().of_track().order_by("number").values_list("slug", flat=True))


def counted(target: Target, size: str) -> Any:
    """Scores that count for or against a run: full protocol, current provenance, shown."""
    scores = Score.objects.filter(target=target, size=size, protocol="paper", submission__mode="score")
    return scores.provenance_current().shown()


def _public(**here: Any) -> QuerySet[Score]:
    """Results for boards that anybody may see."""
    return Score.objects.filter(**here, submission__mode="score", submission__results_public=True)


def seen() -> QuerySet[RunSummary]:
    """Summaries of runs that have a result for boards which anybody may see; of others not even a name is told.

    What is due is looked up: kept, it may be of before.
    """
    found = _public(**{name: OuterRef(name) for name in ("run", "target", "size")})
    return RunSummary.objects.filter(~due() & Q(public=True) | due() & Exists(found))


def entries(*, run_id: int, target: Target, size: str) -> list[Entry]:
    """Every counted sample of a run, by problem, sample and step."""
    later = later_steps(run=run_id, target=target)
    rows: Any = (
        counted(target, size)
        .filter(run_id=run_id)
        .order_by("problem__number", "submission__sample", "submission__step", "id")
        .values_list(
            "id",
            "problem__slug",
            "submission__sample",
            "submission__step",
            "verdict",
            "ranked",
            # a new best that is not confirmed counts as correct, but not yet for how fast it is
            Case(When(provisional=False, then="speedup")),
            Case(When(provisional=False, then="speedup_low")),
            Case(When(provisional=False, then="speedup_high")),
            Case(When(provisional=False, then="utilisation")),
            "provisional",
            "flags",
            "submission_id",
            "mechanisms",
            "noise_floor",
        )
    )
    found = [_entry(*row) for row in rows]
    key = (run_id, target.slug)
    return [replace(one, last=one.step >= later.get((*key, one.problem, one.sample), 0)) for one in found]


def later_steps(**here: Any) -> dict[tuple[int, str, str, int], int]:
    """The last step that has ended, by run, target, problem and sample; left out are samples with no second step.

    Steps that have no score or are not shown count too, or stopping, withdrawing or hiding a bad last step would
    bring the good one before it back.
    """
    steps = Submission.objects.filter(**here, step__gt=0, state__in=FINAL).holding_samples().order_by()
    of = steps.values_list("run_id", "target__slug", "problem__slug", "sample")
    return {(run, target, slug, sample): step for run, target, slug, sample, step in of.annotate(Max("step"))}


def _entry(*row: Any) -> Entry:
    *rest, flags, submission_id, used, floor = row
    entry = Entry(*[*rest, ranking.is_resolved(flags), str(submission_id), tuple(mechanism_names(used))])
    if entry.speedup is None:
        return entry
    speedup = ranking.sure_speedup(entry.speedup, floor)
    return replace(entry, speedup=speedup, low=None if entry.low is None else min(entry.low, speedup))


def mechanism_names(stored: Any) -> list[str]:
    """How data was moved, as names."""
    return [str(one.get("name", "")) if isinstance(one, dict) else str(one) for one in stored or ()]


def on_their_way() -> QuerySet[Submission]:
    """Submissions for boards that still wait for a verdict; a run with one is not complete."""
    return Submission.objects.filter(mode="score", state__in=[state.value for state in LIVE]).order_by()


def last_steps(found: Iterable[Entry]) -> list[Entry]:
    """One entry per problem and sample: the last step, and of a re-scored step the newest score.

    None of a sample whose last step has no entry: it counts as failed.
    """
    last: dict[tuple[str, int], Entry] = {}
    for entry in sorted(found, key=lambda entry: entry.score_id):
        if entry.last:
            last[entry.problem, entry.sample] = entry
    return list(last.values())


def samples_of(*, run_id: int, target: Target) -> int:
    """Samples per problem that a run has: by its submissions, hidden and failed ones too; at least 1."""
    sent = Submission.objects.filter(run_id=run_id, target=target)
    highest = sent.holding_samples().aggregate(highest=Max("sample"))["highest"]
    return 1 + (highest or 0)


def to_sample(entry: Entry) -> metrics.Sample:
    """An entry as the metrics take it; a correct one that may not rank counts as not good."""
    return metrics.Sample(
        entry.problem,
        entry.sample,
        entry.counts,
        entry.speedup if entry.counts else None,
        entry.utilisation,
        entry.resolved,
    )


def figures(found: Sequence[Entry], slugs: Sequence[str], n: int) -> dict[str, Any]:
    """All figures of a run as plain JSON."""
    final = last_steps(found)
    wanted = set(slugs)
    mechanisms = Counter(name for e in final if e.counts for name in e.mechanisms)
    ended = Counter(metrics.category(e.verdict, e.speedup) for e in final if e.problem in wanted)
    values = figures_of([to_sample(entry) for entry in final], ended, slugs, n)
    return values | {
        "provisional": len({e.problem for e in final if e.provisional and e.problem in wanted}),
        "mechanisms": dict(mechanisms.most_common()),
        "climb": _climb(found, slugs),
    }


def figures_of(
    samples: Sequence[metrics.Sample],
    ended: Mapping[str, int],
    slugs: Sequence[str],
    n: int,
    *,
    bands: bool = True,
) -> dict[str, Any]:
    """The figures of a run over some problems, from its samples there: the one place where they are computed.

    ``ended`` counts the samples by category; without ``bands`` the curves have none, which costs most.
    """
    n = max(n, 1 + max((sample.sample for sample in samples), default=0))
    counts = metrics.good_counts(samples, slugs, n, metrics.is_correct)
    fast = metrics.good_counts(samples, slugs, n, metrics.faster_than(1.0))
    ks = [k for k in KS if k <= n]
    geometric = metrics.geometric_mean_speedup(samples, slugs)
    categories = dict(ended)
    categories["missing"] = categories.get("missing", 0) + n * len(slugs) - sum(ended.values())
    return {
        "n": n,
        "track": len(slugs),
        "judged": len(samples),
        "sent": len({sample.problem for sample in samples}.intersection(slugs)),
        "solved": sum(1 for count in counts.values() if count),
        "faster": sum(1 for count in fast.values() if count),
        "pass_at": {str(k): _mean(metrics.metric_values(counts, n, k)) for k in ks},
        "fast_1_at": {str(k): _mean(metrics.metric_values(fast, n, k)) for k in ks},
        "pass_1_band": _band(metrics.metric_values(counts, n, 1)),
        "fast_1_band": _band(metrics.metric_values(fast, n, 1)),
        "geometric_mean": {
            "solved": geometric.solved,
            "whole": geometric.whole,
            "counted": geometric.counted,
        },
        "fast_p": _curve(samples, slugs, n, [0.0, *metrics.log_thresholds()], metrics.faster_than, bands),
        "roof_u": _curve(samples, slugs, n, metrics.unit_thresholds(21), metrics.utilises, bands),
        "categories": {name: categories.get(name, 0) for name in metrics.CATEGORIES},
    }


def _mean(values: Sequence[float]) -> float:
    """Rounded far below what is printed: 4 of 87 and 12 of 3 times 87 are the same figure and share a place."""
    return round(math.fsum(values) / len(values), DIGITS) if values else 0.0


def _band(values: Sequence[float]) -> list[float]:
    band = bootstrap(values, resamples=RESAMPLES)
    return [band.low, band.high]


def _curve(
    samples: Sequence[metrics.Sample],
    slugs: Sequence[str],
    n: int,
    at: Sequence[float],
    good_at: Any,
    bands: bool,
) -> dict[str, list[float]]:
    """A curve at k = 1, with its bootstrap band at each threshold where that is asked for."""
    found: list[Band] = []
    known: dict[tuple[float, ...], Band] = {}  # a curve is a staircase: few distinct steps
    correct = [sample for sample in samples if sample.correct]  # nothing else is good at any threshold
    for threshold in at:
        counts = metrics.good_counts(correct, slugs, n, good_at(threshold))
        per_problem = tuple(metrics.metric_values(counts, n, 1))
        if per_problem not in known:
            mean = _mean(per_problem)
            known[per_problem] = bootstrap(per_problem, resamples=RESAMPLES) if bands else Band(mean, 0, 1)
        found.append(known[per_problem])
    curve = {"at": list(at), "value": [round(band.value, DIGITS) for band in found]}
    if bands:
        curve |= {
            "low": [round(band.low, DIGITS) for band in found],
            "high": [round(band.high, DIGITS) for band in found],
        }
    return curve


def _climb(found: Sequence[Entry], slugs: Sequence[str]) -> list[list[float]]:
    """[step, solved, fast_1] by step; empty for runs without steps."""
    last = max((entry.step for entry in found), default=0)
    if last == 0:
        return []
    steps = [metrics.Step(e.problem, e.step, e.counts, e.speedup) for e in found if e.sample == 0]
    return [[c.step, c.solved, c.fast_1] for c in metrics.climb(steps, slugs, last=last)]


def detail(found: Sequence[Entry]) -> dict[str, Any]:
    """What the model page shows problem by problem, as plain JSON.

    ``outcomes``: per problem the last step that speaks for the run: ranked before not, then measured before
    what could not be told apart, then the faster.
    ``samples``: [problem, sample, category, speedup, counts as correct, utilisation, resolved, provisional] of
    every sample's last step.
    """
    final = last_steps(found)
    speaks: dict[str, Entry] = {}
    for entry in sorted(final, key=_first_to_speak):
        speaks.setdefault(entry.problem, entry)
    return {
        "outcomes": {
            slug: [
                metrics.category(e.verdict, e.speedup),
                *((e.speedup, e.low, e.high, e.utilisation) if e.counts else (None, None, None, None)),
                e.submission_id,
                e.provisional,
            ]
            for slug, e in speaks.items()
        },
        "samples": [
            [
                e.problem,
                e.sample,
                metrics.category(e.verdict, e.speedup),
                e.speedup if e.counts else None,
                e.counts,
                e.utilisation,
                e.resolved,
                e.provisional,
            ]
            for e in final
        ],
    }


def _first_to_speak(entry: Entry) -> tuple[bool, bool, float, int]:
    return (not entry.counts, not entry.resolved, -(entry.speedup or 0.0), entry.score_id)


def due() -> Q:
    """Which summaries a reader must not take as they are."""
    return Q(due=True) | ~Q(rules=RULES)


def ensure(wanted: QuerySet[RunSummary]) -> QuerySet[RunSummary]:
    """The same summaries, with those that were due computed again."""
    late = wanted.filter(due()).order_by("pk").select_related("run", "target")
    for summary in late.only("size", "run", "target__slug"):
        refresh(run=summary.run, target=summary.target, size=summary.size)
    return wanted


@transaction.atomic
def refresh(*, run: ModelRun, target: Target, size: str) -> RunSummary:
    """Compute and store the summary of a run; called at write time, so that reads stay cheap.

    The row is locked first: a writer marks it before it commits, so either its change is seen here or its
    mark waits until this is stored, and then stays.
    """
    place = {"run": run, "target": target, "size": size}
    RunSummary.objects.get_or_create(**place, defaults={"updated_at": timezone.now()})
    summary = RunSummary.objects.select_for_update().get(**place)
    slugs = track()
    found = entries(run_id=run.pk, target=target, size=size)
    summary.figures = figures(found, slugs, samples_of(run_id=run.pk, target=target))
    summary.cells, summary.detail = figure_cells.kept(summary.figures), detail(found)
    for name, value in columns(summary.figures).items():
        setattr(summary, name, value)
    summary.public = _public(run=run, target=target, size=size).exists()
    summary.due, summary.rules = False, RULES
    summary.updated_at = timezone.now()
    summary.save()
    return summary


def columns(values: dict[str, Any]) -> dict[str, Any]:
    """The figures that the model board sorts by, as columns."""
    return {
        "pass_1": values["pass_at"]["1"],
        "fast_1": values["fast_1_at"]["1"],
        "solved": values["solved"],
        "geometric_mean": values["geometric_mean"]["whole"] or 0.0,
        "samples": values["n"],
    }
