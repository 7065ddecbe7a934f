"""The model board: the latest complete run of each model, harness and prompt, with its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet, Window
from django.db.models.functions import Coalesce, RowNumber, TruncDate

from leaderboard import summaries
from leaderboard.models import RunSummary
from portal.submissions.models import Submission
from portal.submissions.states import LIVE
from problems.models import Target

SORTS = {
    "fast_1": "faster than the reference",
    "pass_1": "correct",
    "geometric_mean": "geometric-mean speedup",
    "solved": "problems solved",
    "date": "date",
    "name": "name",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reader asked the model board for; empty means everything."""

    verified: bool = True
    harness: str = ""
    weights: str = ""
    reasoning: str = ""
    as_of: date | None = None
    sort: str = "fast_1"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One line of the model board."""

    place: int
    run_id: int
    model: str
    model_slug: str
    entrant_id: int
    vendor: str
    open_weights: bool | None
    reasoning: bool | None
    harness: str
    prompt_variant: str
    run: str
    run_slug: str
    verified: bool
    day: date
    updated_at: datetime
    figures: dict[str, Any]

    @property
    def label(self) -> str:
        """Model and way of running, as charts name it."""
        extra = [self.harness] if self.harness != "single-shot" else []
        extra += [self.prompt_variant] if self.prompt_variant else []
        return f"{self.model} ({', '.join(extra)})" if extra else self.model

    @property
    def pass_1(self) -> float:
        return float(self.figures["pass_at"]["1"])

    @property
    def fast_1(self) -> float:
        return float(self.figures["fast_1_at"]["1"])

    @property
    def best_k(self) -> tuple[str, float, float]:
        """The largest k that the run's samples allow, with pass@k and fast_1@k."""
        k = max(self.figures["pass_at"], key=int)
        return k, self.figures["pass_at"][k], self.figures["fast_1_at"][k]


def latest_runs(*, target: Target, size: str, filters: Filters) -> QuerySet[RunSummary]:
    """Summaries of the latest complete run per model, harness and prompt variant.

    A run with a submission still on its way is not complete: the one before it stands until it is.
    """
    rows = RunSummary.objects.filter(
        target=target, size=size, run__entrant__kind="model", run__verified=filters.verified
    )
    if filters.harness:
        rows = rows.filter(run__harness=filters.harness)
    for field, wanted in (("open_weights", filters.weights), ("reasoning", filters.reasoning)):
        if wanted in ("yes", "no"):
            rows = rows.filter(**{f"run__entrant__{field}": wanted == "yes"})
    rows = rows.annotate(day=Coalesce("run__date", TruncDate("run__created_at")))
    if filters.as_of:
        rows = rows.filter(day__lte=filters.as_of)
    on_its_way = Submission.objects.filter(
        run=OuterRef("run"), target=target, mode="score", state__in=[state.value for state in LIVE]
    )
    newest = Window(
        RowNumber(),
        partition_by=[F("run__entrant"), F("run__harness"), F("run__prompt_variant")],
        order_by=[F("day").desc(), F("run_id").desc()],
    )
    complete = rows.filter(~Exists(on_its_way)).annotate(turn=newest)
    return complete.filter(turn=1).select_related("run__entrant")


def model_board(*, target: Target, size: str, filters: Filters) -> list[ModelRow]:
    """All rows of the board in the order asked for; figures are those of the present basis."""
    found = list(latest_runs(target=target, size=size, filters=filters))
    values = current_figures(found, target=target, size=size)
    rows = [row_of(summary, values[summary.pk]) for summary in found]
    rows.sort(key=lambda row: _sort_key(row, filters.sort))
    return _with_places(rows)


def current_figures(found: Sequence[RunSummary], *, target: Target, size: str) -> dict[int, dict[str, Any]]:
    """Figures per summary id, recomputed here where the stored ones no longer match the scores."""
    slugs = summaries.track()
    key = summaries.track_key(slugs)
    now = summaries.bases(target=target, size=size, runs=[s.run_id for s in found], key=key)
    nothing = summaries.Basis(track=key)
    return {
        summary.pk: summary.figures
        if summaries.basis_of(summary) == now.get(summary.run_id, nothing)
        else summaries.compute(run_id=summary.run_id, target=target, size=size, slugs=slugs)
        for summary in found
    }


def row_of(summary: RunSummary, figures: dict[str, Any]) -> ModelRow:
    """A summary as a row without a place."""
    run, entrant = summary.run, summary.run.entrant
    return ModelRow(
        place=0,
        run_id=run.pk,
        model=entrant.name,
        model_slug=entrant.slug,
        entrant_id=entrant.pk,
        vendor=entrant.vendor,
        open_weights=entrant.open_weights,
        reasoning=entrant.reasoning,
        harness=run.harness,
        prompt_variant=run.prompt_variant,
        run=run.name,
        run_slug=run.slug,
        verified=run.verified,
        day=run.date or run.created_at.date(),
        updated_at=summary.updated_at,
        figures=figures,
    )


def _sort_key(row: ModelRow, sort: str) -> tuple[Any, ...]:
    name = (row.model.lower(), row.harness, row.prompt_variant, row.run_id)
    if sort == "name":
        return name
    value: float = {
        "pass_1": row.pass_1,
        "geometric_mean": row.figures["geometric_mean"]["whole"] or 0.0,
        "solved": row.figures["solved"],
        "date": row.day.toordinal(),
    }.get(sort, row.fast_1)
    return (-value, -row.fast_1, -row.pass_1, *name)


def _with_places(rows: list[ModelRow]) -> list[ModelRow]:
    """Places by fast_1, whatever the order shown; equal figures share a place."""
    ordered = sorted((row.fast_1 for row in rows), reverse=True)
    place = {value: index + 1 for index, value in reversed(list(enumerate(ordered)))}
    return [
        ModelRow(**{n: getattr(row, n) for n in ModelRow.__slots__} | {"place": place[row.fast_1]})
        for row in rows
    ]


def public_row(row: ModelRow) -> dict[str, Any]:
    """A row as JSON shows it: identity and all figures."""
    return {
        "place": row.place,
        "model": row.model,
        "model_slug": row.model_slug,
        "vendor": row.vendor,
        "open_weights": row.open_weights,
        "reasoning": row.reasoning,
        "harness": row.harness,
        "prompt_variant": row.prompt_variant,
        "run": row.run,
        "run_id": row.run_id,
        "verified": row.verified,
        "date": row.day.isoformat(),
        **row.figures,
    }


CSV_COLUMNS = (
    "place", "model", "vendor", "open_weights", "reasoning", "harness", "prompt_variant", "run", "date",
    "samples", "track", "solved", "faster", "pass_1", "pass_1_low", "pass_1_high", "fast_1", "fast_1_low",
    "fast_1_high", "geometric_mean_solved", "geometric_mean_whole",
)  # fmt: skip


def flat_row(row: ModelRow) -> dict[str, Any]:
    """A row as CSV shows it: one number per column."""
    figures = row.figures
    return public_row(row) | {
        "samples": figures["n"],
        "pass_1": row.pass_1,
        "pass_1_low": figures["pass_1_band"][0],
        "pass_1_high": figures["pass_1_band"][1],
        "fast_1": row.fast_1,
        "fast_1_low": figures["fast_1_band"][0],
        "fast_1_high": figures["fast_1_band"][1],
        "geometric_mean_solved": figures["geometric_mean"]["solved"],
        "geometric_mean_whole": figures["geometric_mean"]["whole"],
    }
