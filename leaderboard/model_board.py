"""The model board: the latest complete run of each model, harness and prompt, with its figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Coalesce, TruncDate

from leaderboard import subset, summaries
from leaderboard.models import RunSummary
from problems.models import Target

PAGE = 50
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
    in_progress: bool = False

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


@dataclass(frozen=True, slots=True)
class Contender:
    """A run that stands on the board, with what the board is sorted by."""

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


@dataclass(frozen=True, slots=True)
class BoardPage:
    """One page of the board, its figures in brief, and the first few runs by place for the chart above it."""

    page: Page[Contender]
    rows: list[ModelRow]
    leaders: list[ModelRow]
    part: bool = False

    @property
    def count(self) -> int:
        """Runs on all pages."""
        return self.page.paginator.count


def contenders(*, target: Target, size: str, filters: Filters) -> list[Contender]:
    """The latest complete run per model, harness and prompt variant, in the order asked for.

    A verified run with a submission still on its way is not complete: the one before it stands until it is.
    A community run stands from its first result on, and says that it is still running.
    """
    rows = summaries.ensure(_asked(target, size, filters)).order_by()
    columns = (
        "pk", "run_id", "run__entrant_id", "run__entrant__name", "run__harness", "run__prompt_variant",
        Coalesce("run__date", TruncDate("run__created_at")), "pass_1", "fast_1", "geometric_mean", "solved",
    )  # fmt: skip
    waits = set(summaries.on_their_way().filter(target=target).values_list("run_id", flat=True))
    latest: dict[tuple[int, str, str], Contender] = {}
    for values in rows.values_list(*columns):
        run = Contender(*values)
        if run.run_id in waits:
            run = replace(run, in_progress=True)
        if (run.in_progress and filters.verified) or (filters.as_of and run.day > filters.as_of):
            continue
        key = (run.entrant_id, run.harness, run.prompt_variant)
        held = latest.get(key)
        if held is None or (run.day, run.run_id) > (held.day, held.run_id):
            latest[key] = run
    return sorted(latest.values(), key=lambda run: _sort_key(run, filters.sort))


def _asked(target: Target, size: str, filters: Filters) -> QuerySet[RunSummary]:
    rows = RunSummary.objects.filter(
        target=target, size=size, run__entrant__kind="model", run__verified=filters.verified
    )
    if filters.harness:
        rows = rows.filter(run__harness=filters.harness)
    for field, wanted in (("open_weights", filters.weights), ("reasoning", filters.reasoning)):
        if wanted in ("yes", "no"):
            rows = rows.filter(**{f"run__entrant__{field}": wanted == "yes"})
    return rows


def ordered(
    *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[Contender]:
    """All runs of the board in the order asked for; with ``slugs`` over these problems only."""
    return _over(contenders(target=target, size=size, filters=filters), slugs, filters.sort)


def model_board(
    *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """All rows of the board with all their figures, in the order asked for.

    With ``slugs`` everything is taken over these problems only, and curves carry no bands.
    """
    found = ordered(target=target, size=size, filters=filters, slugs=slugs)
    places = _places(found)
    return _rows(found, places) if slugs is None else _rows_over(found, places, slugs)


def first_rows(
    count: int, *, target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """The first rows of the board with all their figures, bands included."""
    found = ordered(target=target, size=size, filters=filters, slugs=slugs)
    places = _places(found)
    if slugs is None:
        return _rows(found[:count], places)
    return _rows_over(found[:count], places, slugs, bands=True)


def rows_of_runs(
    runs: Sequence[int], *, target: Target, size: str, slugs: Sequence[str] | None = None
) -> list[ModelRow]:
    """Runs by id in the order given, whether or not they stand; one without anything there is left out."""
    wanted = summaries.ensure(RunSummary.objects.filter(run__in=runs, target=target, size=size))
    found = list(wanted.select_related("run__entrant"))
    for summary in found if slugs is not None else ():
        summary.figures = subset.figures(summary.detail, slugs or (), summary.samples, bands=True)
    return [row_of(summary) for summary in sorted(found, key=lambda row: runs.index(row.run_id))]


def board_page(
    *,
    target: Target,
    size: str,
    filters: Filters,
    page: int,
    leaders: int = 0,
    slugs: Sequence[str] | None = None,
) -> BoardPage:
    """One page of the board, and its first ``leaders`` runs by place; beyond the last page it is the last.

    With ``slugs`` everything is taken over these problems only; then only the leaders' curves carry bands.
    """
    found = _over(contenders(target=target, size=size, filters=filters), slugs, filters.sort)
    places = _places(found)
    chosen = Paginator(found, PAGE).get_page(page)
    ahead = sorted(found, key=lambda run: places[run.summary_id])[:leaders]
    if slugs is not None:
        rows, first = _rows_over(list(chosen), places, slugs), _rows_over(ahead, places, slugs, bands=True)
        return BoardPage(chosen, rows, first, part=True)
    return BoardPage(chosen, _rows(list(chosen), places, brief=True), _rows(ahead, places) if ahead else [])


def _over(found: list[Contender], slugs: Sequence[str] | None, sort: str) -> list[Contender]:
    """The same runs in the order that they have over some problems only."""
    if slugs is None:
        return found
    wanted = RunSummary.objects.filter(pk__in=[run.summary_id for run in found])
    details = {pk: (detail, n) for pk, detail, n in wanted.values_list("pk", "detail", "samples")}
    there = [
        replace(run, **subset.sort_values(details[run.summary_id][0], slugs, details[run.summary_id][1]))
        for run in found
    ]
    return sorted(there, key=lambda run: _sort_key(run, sort))


def _places(found: Sequence[Contender]) -> dict[int, int]:
    """Place by id of the summary: by fast_1, whatever the order shown; equal figures share a place."""
    ordered = sorted((run.fast_1 for run in found), reverse=True)
    place = {value: index + 1 for index, value in reversed(list(enumerate(ordered)))}
    return {run.summary_id: place[run.fast_1] for run in found}


def _rows(found: Sequence[Contender], places: Mapping[int, int], *, brief: bool = False) -> list[ModelRow]:
    """The runs with their figures, whole or in brief, in the same order."""
    wanted = RunSummary.objects.filter(pk__in={run.summary_id for run in found}).select_related(
        "run__entrant"
    )
    loaded = {row.pk: row for row in wanted.defer("detail", "figures" if brief else "brief")}
    for row in loaded.values() if brief else ():
        row.figures = row.brief
    return [row_of(loaded[run.summary_id], places[run.summary_id], run.in_progress) for run in found]


def _rows_over(
    found: Sequence[Contender], places: Mapping[int, int], slugs: Sequence[str], *, bands: bool = False
) -> list[ModelRow]:
    """The same with figures over some problems, taken from what is kept of each run."""
    wanted = RunSummary.objects.filter(pk__in={run.summary_id for run in found})
    loaded = {
        row.pk: row for row in wanted.select_related("run__entrant").defer("figures", "brief").order_by()
    }
    for row in loaded.values():
        row.figures = subset.figures(row.detail, slugs, row.samples, bands=bands)
    return [row_of(loaded[run.summary_id], places[run.summary_id], run.in_progress) for run in found]


def row_of(summary: RunSummary, place: int = 0, in_progress: bool = False) -> ModelRow:
    """A summary as a row."""
    run, entrant = summary.run, summary.run.entrant
    return ModelRow(
        place=place,
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
        figures=summary.figures,
        in_progress=in_progress,
    )


def _sort_key(run: Contender, sort: str) -> tuple[Any, ...]:
    name = (run.model.lower(), run.harness, run.prompt_variant, run.run_id)
    if sort == "name":
        return name
    value: float = {
        "pass_1": run.pass_1,
        "geometric_mean": run.geometric_mean,
        "solved": run.solved,
        "date": run.day.toordinal(),
    }.get(sort, run.fast_1)
    return (-value, -run.fast_1, -run.pass_1, *name)


def public_row(row: ModelRow) -> dict[str, Any]:
    """A row as JSON shows it: identity and all figures."""
    return identity(row) | row.figures


def identity(row: ModelRow) -> dict[str, Any]:
    """What JSON says of a row before its figures."""
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
        "in_progress": row.in_progress,
        "date": row.day.isoformat(),
    }


def document(board: BoardPage, target: Target, size: str, filters: Filters) -> str:
    """A page of the board as JSON, with all figures: they go as they are stored, read by nobody on the way."""
    if board.part:  # over some problems nothing is stored
        figures = {row.run_id: json.dumps(row.figures) for row in board.rows}
    else:
        wanted = RunSummary.objects.filter(pk__in=[run.summary_id for run in board.page])
        text = Cast("figures", TextField())
        figures = dict(wanted.order_by().annotate(text=text).values_list("run_id", "text"))
    rows = [f"{json.dumps(identity(row))[:-1]}, {figures[row.run_id].lstrip()[1:]}" for row in board.rows]
    head = {
        "target": target.slug,
        "size": size,
        "verified": filters.verified,
        "runs": board.count,
        "page": board.page.number,
        "pages": board.page.paginator.num_pages,
    }
    return f'{json.dumps(head)[:-1]}, "rows": [{", ".join(rows)}]}}'


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
