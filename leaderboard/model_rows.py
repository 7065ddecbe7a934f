"""Runs of models as rows: who they are, what they are sorted by, and as much of their figures as a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from django.db.models import BooleanField, Case, ExpressionWrapper, F, JSONField, Q, QuerySet, When
from django.db.models.functions import Coalesce, TruncDate

from leaderboard import figure_cells, subset, summaries
from leaderboard.models import RunSummary
from leaderboard.querysets import RULES
from portal.submissions.models import ModelRun
from problems.models import Target


class Contender(NamedTuple):
    """A run that may stand on a board: what the board is ordered by and no more, since all of them are read."""

    summary_id: int
    run_id: int
    entrant_id: int
    model: str
    harness: str
    prompt_variant: str
    day: date
    pass_1: float
    fast_1: float
    geometric_mean: float
    solved: int
    in_progress: bool = False
    place: int = 0

    @property
    def label(self) -> str:
        """Model and way of running, as charts name it."""
        return label(self.model, self.harness, self.prompt_variant)


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
    place: int = 0
    in_progress: bool = False
    figures: Mapping[str, Any] = {}
    cells: str = ""

    @property
    def label(self) -> str:
        """Model and way of running, as charts name it."""
        return label(self.model, self.harness, self.prompt_variant)

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


class Drawn(NamedTuple):
    """A run as a chart of fast_p curves takes it."""

    label: str
    entrant_id: int
    figures: Mapping[str, Any]


def label(model: str, harness: str, prompt_variant: str) -> str:
    """A model and its way of running, where somebody named one that is not the usual one."""
    extra = [harness] if harness not in (ModelRun.Harness.SINGLE_SHOT, ModelRun.Harness.UNSORTED) else []
    extra += [prompt_variant] if prompt_variant else []
    return f"{model} ({', '.join(extra)})" if extra else model


_NOTHING: Mapping[str, Any] = {}
_DAY = Coalesce("run__date", TruncDate("run__created_at"))
_ORDER = (
    "pk", "run_id", "run__entrant_id", "run__entrant__name", "run__harness", "run__prompt_variant", _DAY, "pass_1",
    "fast_1", "geometric_mean", "solved",
)  # fmt: skip
_ROW = (
    "pk", "run_id", "run__name", "run__slug", "run__harness", "run__prompt_variant", "run__verified", _DAY,
    "run__entrant_id", "run__entrant__name", "run__entrant__slug", "run__entrant__vendor",
    "run__entrant__open_weights", "run__entrant__reasoning", "samples", "pass_1", "fast_1",
)  # fmt: skip


def contenders(wanted: QuerySet[RunSummary], target: Target) -> list[Contender]:
    """Some summaries of a target as contenders, in no order; what was due is computed first."""
    waiting = summaries.on_their_way().filter(target=target).values("run_id")
    wanted = wanted.annotate(waits=ExpressionWrapper(Q(run_id__in=waiting), BooleanField()))
    return [Contender(*values[:-2]) for values in _current(wanted, (*_ORDER, "waits"))]


def read(wanted: QuerySet[RunSummary]) -> list[ModelRow]:
    """Some summaries as rows without figures, in their order; what was due is computed first."""
    return [ModelRow(*values[:-2]) for values in _current(wanted, _ROW)]


def _current(wanted: QuerySet[RunSummary], columns: Sequence[Any]) -> list[Sequence[Any]]:
    """Columns of summaries, all of them current, before the two that say so."""
    listed = wanted.values_list(*columns, "due", "rules")
    found = list(listed)
    if any(values[-2] or values[-1] != RULES for values in found):
        summaries.ensure(wanted)
        found = list(listed.all())
    return found


def _row(run: Contender, values: Sequence[Any], *, figures: Any = _NOTHING, cells: str = "") -> ModelRow:
    return ModelRow._make((*values, run.place, run.in_progress, figures, cells))


def with_kept(found: Sequence[Contender], kept: Any) -> list[tuple[ModelRow, Any]]:
    """The rows of some contenders in their order, each with a column or expression of what is kept of it."""
    wanted = RunSummary.objects.filter(pk__in=[run.summary_id for run in found]).order_by()
    loaded = {values[0]: values for values in wanted.values_list(*_ROW, kept)}
    here = [(run, loaded[run.summary_id]) for run in found if run.summary_id in loaded]
    return [(_row(run, values[:-1]), values[-1]) for run, values in here]


def in_brief(
    found: Sequence[Contender], ahead: Sequence[Contender] = ()
) -> tuple[list[ModelRow], list[Drawn]]:
    """The rows with what a line of the board shows of their figures, and the fast_p curves of those ahead."""
    drawn = [run.summary_id for run in ahead]
    curve = Case(When(pk__in=drawn, then=F("figures__fast_p")), output_field=JSONField())
    wanted = RunSummary.objects.filter(pk__in={*drawn, *(run.summary_id for run in found)}).order_by()
    loaded = {values[0]: values for values in wanted.values_list(*_ROW, "cells", curve)}
    rows = [(run, loaded[run.summary_id]) for run in found if run.summary_id in loaded]
    curves = [(run, loaded[run.summary_id][-1]) for run in ahead if run.summary_id in loaded]
    return (
        [_row(run, values[:-2], cells=values[-2]) for run, values in rows],
        [Drawn(run.label, run.entrant_id, {"fast_p": value}) for run, value in curves],
    )


def with_figures(
    found: Sequence[Contender], slugs: Sequence[str] | None, *, bands: bool = True
) -> list[ModelRow]:
    """The rows with all their figures, of the whole track as they are kept.

    With ``slugs`` they are taken over these problems only, and their curves have bands where asked for.
    """
    if slugs is None:
        return [row._replace(figures=figures) for row, figures in with_kept(found, "figures")]
    return [over(row, detail, slugs, bands=bands) for row, detail in with_kept(found, "detail")]


def over(row: ModelRow, detail: Mapping[str, Any], slugs: Sequence[str], *, bands: bool = True) -> ModelRow:
    """A row over some problems, from what is kept of each sample."""
    values = subset.figures(detail, slugs, row.samples, bands=bands)
    return row._replace(
        figures=values,
        cells=figure_cells.kept(values),
        pass_1=values["pass_at"]["1"],
        fast_1=values["fast_1_at"]["1"],
    )


def whole(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """The same rows with all their figures."""
    wanted = RunSummary.objects.filter(pk__in=[row.summary_id for row in rows]).order_by()
    figures = dict(wanted.values_list("pk", "figures"))
    return [row._replace(figures=figures[row.summary_id]) for row in rows if row.summary_id in figures]


def resorted(found: Sequence[Contender], slugs: Sequence[str]) -> list[Contender]:
    """The same with what the board is sorted by taken over some problems only."""
    wanted = RunSummary.objects.filter(pk__in=[run.summary_id for run in found]).order_by()
    kept = {pk: (detail, samples) for pk, detail, samples in wanted.values_list("pk", "detail", "samples")}
    return [
        run._replace(**subset.sort_values(kept[run.summary_id][0], slugs, kept[run.summary_id][1]))
        for run in found
        if run.summary_id in kept
    ]
