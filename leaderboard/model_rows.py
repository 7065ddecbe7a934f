"""Runs of models as rows: who they are, what they are sorted by, and as much of their figures as a page shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, QuerySet
from django.db.models.functions import Coalesce, TruncDate

from leaderboard import subset, summaries
from leaderboard.models import RunSummary


class ModelRow(NamedTuple):
    """One run on a target at a size. ``place`` is 0 where it holds none; ``figures`` are empty until read."""

    summary_id: int
    run_id: int
    run: str
    run_slug: str
    harness: str
    prompt_variant: str
    verified: bool
    day: date
    entrant_id: int
    model: str
    model_slug: str
    vendor: str
    open_weights: bool | None
    reasoning: bool | None
    samples: int
    pass_1: float
    fast_1: float
    geometric_mean: float
    solved: int
    place: int = 0
    in_progress: bool = False
    figures: Mapping[str, Any] = {}
    brief: Mapping[str, Any] = {}

    @property
    def label(self) -> str:
        """Model and way of running, as charts name it."""
        extra = [self.harness] if self.harness != "single-shot" else []
        extra += [self.prompt_variant] if self.prompt_variant else []
        return f"{self.model} ({', '.join(extra)})" if extra else self.model

    @property
    def words(self) -> list[str]:
        """What stands below the model's name."""
        weights = {True: "open", False: "closed", None: ""}[self.open_weights]
        said = [
            self.vendor,
            self.harness,
            self.prompt_variant,
            weights,
            "reasoning" if self.reasoning else "",
            "still running" if self.in_progress else "",
        ]
        return [word for word in said if word]

    @property
    def best_k(self) -> tuple[str, float, float]:
        """The largest k that the run's samples allow, with pass@k and fast_1@k."""
        k = max(self.figures["pass_at"], key=int)
        return k, self.figures["pass_at"][k], self.figures["fast_1_at"][k]


_DAY = Coalesce("run__date", TruncDate("run__created_at"))
_COLUMNS = (
    "pk", "run_id", "run__name", "run__slug", "run__harness", "run__prompt_variant", "run__verified", _DAY,
    "run__entrant_id", "run__entrant__name", "run__entrant__slug", "run__entrant__vendor",
    "run__entrant__open_weights", "run__entrant__reasoning", "samples", "pass_1", "fast_1",
    "geometric_mean", "solved",
)  # fmt: skip


def read(wanted: QuerySet[RunSummary]) -> list[ModelRow]:
    """The rows of some summaries, without their figures; what was due is computed first."""
    listed = wanted.annotate(late=ExpressionWrapper(summaries.due(), BooleanField()))
    found = list(listed.values_list(*_COLUMNS, "late"))
    if any(late for *_, late in found):
        summaries.ensure(wanted)
        found = list(listed.values_list(*_COLUMNS, "late"))
    return [ModelRow(*columns) for *columns, _ in found]


def in_brief(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """The same with what a line of the board shows of their figures."""
    wanted = RunSummary.objects.filter(pk__in=[row.summary_id for row in rows])
    briefs = dict(wanted.order_by().values_list("pk", "brief"))
    return [row._replace(brief=briefs[row.summary_id]) for row in rows]


def whole(
    rows: Sequence[ModelRow], slugs: Sequence[str] | None = None, *, bands: bool = True
) -> list[ModelRow]:
    """The same with all their figures, of the whole track as they are kept.

    With ``slugs`` they are taken over these problems only, and their curves have bands where asked for.
    """
    wanted = RunSummary.objects.filter(pk__in=[row.summary_id for row in rows]).order_by()
    if slugs is None:
        figures = dict(wanted.values_list("pk", "figures"))
        return [row._replace(figures=figures[row.summary_id]) for row in rows]
    details = dict(wanted.values_list("pk", "detail"))
    return [_over(row, details[row.summary_id], slugs, bands=bands) for row in rows]


def _over(row: ModelRow, detail: Mapping[str, Any], slugs: Sequence[str], *, bands: bool) -> ModelRow:
    values = subset.figures(detail, slugs, row.samples, bands=bands)
    sorts = {name: value for name, value in summaries.columns(values).items() if name != "samples"}
    return row._replace(figures=values, brief=summaries.brief(values), **sorts)


def with_curves(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """The same with the fast_p curve alone of their figures."""
    wanted = RunSummary.objects.filter(pk__in=[row.summary_id for row in rows])
    curves = dict(wanted.order_by().values_list("pk", "figures__fast_p"))
    return [row._replace(figures={"fast_p": curves[row.summary_id]}) for row in rows]


def resorted(rows: Iterable[ModelRow], slugs: Sequence[str]) -> list[ModelRow]:
    """The same with what the board is sorted by taken over some problems only."""
    held = list(rows)
    wanted = RunSummary.objects.filter(pk__in=[row.summary_id for row in held]).order_by()
    details = dict(wanted.values_list("pk", "detail"))
    return [row._replace(**subset.sort_values(details[row.summary_id], slugs, row.samples)) for row in held]
