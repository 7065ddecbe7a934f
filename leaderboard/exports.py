"""The whole public data set, for people who compute their own figures: its columns, rows and data card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models.functions import Coalesce, TruncDate

from evaluator.harness.version import PROTOCOL_VERSION
from leaderboard import summaries
from leaderboard.models import Score
from leaderboard.querysets import ScoreQuerySet

SCHEMA = 3


class Column(NamedTuple):
    """One column: where it comes from, how it is kept in Parquet, its unit and what it means."""

    field: str
    kind: str
    unit: str
    meaning: str


SCORES: dict[str, Column] = {
    "score_id": Column("id", "int64", "", "number of the score; rises with time"),
    "submission": Column(
        "submission_id", "string", "", "id of the submission; its page is /submissions/<id>/"
    ),
    "problem": Column("problem__slug", "string", "", "slug of the problem"),
    "target": Column("target__slug", "string", "", "slug of the target (hardware)"),
    "size": Column("size", "string", "", "size of the inputs"),
    "entrant": Column("entrant__name", "string", "", "person, team or model that the score belongs to"),
    "entrant_slug": Column("entrant__slug", "string", "", "stable name of the entrant"),
    "entrant_kind": Column("entrant__kind", "string", "", "person, team or model"),
    "run": Column("run_id", "int64", "", "number of the run (campaign); the key into the runs"),
    "harness": Column("run__harness", "string", "", "single-shot, agentic or unsorted"),
    "prompt_variant": Column("run__prompt_variant", "string", "", "prompt variant as the run names it"),
    "verified": Column("run__verified", "bool", "", "whether staff or the model's owner vouches for the run"),
    "sample": Column("submission__sample", "int64", "", "sample of the run, from 0"),
    "step": Column("submission__step", "int64", "", "step of an agent, from 0"),
    "last": Column(
        "submission__step",
        "bool",
        "",
        "whether it is the last step of its sample; of a sample only that one counts",
    ),
    "verdict": Column("verdict", "string", "", "what came out"),
    "code": Column("code", "string", "", "stable reason"),
    "ranked": Column(
        "ranked", "bool", "", "whether the measurement may stand on a board: what counts as good"
    ),
    "provisional": Column(
        "provisional",
        "bool",
        "",
        "a new best that waits for its second measurement: correct, but its speed does not count yet",
    ),
    "speedup": Column(
        "speedup",
        "float64",
        "ratio",
        "reference time over solution time, of paired blocks; at most 1 where a flag says below_resolution or noisy",
    ),
    "speedup_low": Column(
        "speedup_low", "float64", "ratio", "lower 95 % limit of the speedup, or what it was brought down to"
    ),
    "speedup_high": Column("speedup_high", "float64", "ratio", "upper 95 % limit of the speedup"),
    "noise_floor": Column("noise_floor", "float64", "relative", "speedups whose ratio is within it are ties"),
    "solution_ms": Column("solution_ms", "float64", "ms", "time per call"),
    "reference_ms": Column(
        "reference_ms", "float64", "ms", "time per call of the reference on the same host"
    ),
    "t_roof_ms": Column("t_roof_ms", "float64", "ms", "least time that the hardware allows (roofline)"),
    "utilisation": Column("utilisation", "float64", "ratio", "roofline time over solution time"),
    "bound": Column("bound", "string", "", "what bounds the roofline"),
    "peak_bytes": Column(
        "peak_bytes", "int64", "bytes", "peak memory of the job: on the cards, or on the host for CPU targets"
    ),
    "reference_peak_bytes": Column("reference_peak_bytes", "int64", "bytes", "the same of the reference"),
    "isolation_grade": Column("isolation_grade", "string", "", "full, partial or none"),
    "mechanisms": Column("mechanisms", "list", "", "how data was moved, as far as it could be told"),
    "flags": Column("flags", "list", "", "remarks of the judge"),
    "protocol": Column("protocol", "string", "", "paper: the full protocol"),
    "input_set": Column("input_set", "string", "", "hardened: secret inputs"),
    "problem_revision": Column(
        "problem_revision", "string", "", "revision of the problem it was judged against"
    ),
    "harness_version": Column("harness_version", "string", "", "version of the judge's protocol"),
    "created_at": Column("created_at", "string", "UTC, ISO 8601", "when it was scored"),
}

RUNS: dict[str, Column] = {
    "run": Column("run_id", "int64", "", "number of the run (campaign)"),
    "target": Column("target__slug", "string", "", "slug of the target (hardware)"),
    "size": Column("size", "string", "", "size of the inputs"),
    "entrant": Column("run__entrant__name", "string", "", "whose run it is"),
    "entrant_slug": Column("run__entrant__slug", "string", "", "stable name of the entrant"),
    "entrant_kind": Column("run__entrant__kind", "string", "", "person, team or model"),
    "vendor": Column("run__entrant__vendor", "string", "", "maker of the model"),
    "open_weights": Column("run__entrant__open_weights", "bool", "", "null: not said"),
    "reasoning": Column("run__entrant__reasoning", "bool", "", "null: not said"),
    "name": Column("run__name", "string", "", "name of the run"),
    "harness": Column("run__harness", "string", "", "single-shot, agentic or unsorted"),
    "prompt_variant": Column("run__prompt_variant", "string", "", "prompt variant as the run names it"),
    "verified": Column("run__verified", "bool", "", "whether staff or the model's owner vouches for the run"),
    "date": Column("day", "string", "ISO 8601", "day of the run"),
    "samples": Column(
        "samples", "int64", "", "samples per problem that were sent, hidden and failed ones too"
    ),
    "complete": Column("complete", "bool", "", "false while a submission of it waits to be judged"),
}


def _public() -> ScoreQuerySet:
    scores = Score.objects.provenance_current().shown()
    return scores.filter(protocol="paper", submission__mode="score")


def rows() -> Iterator[dict[str, Any]]:
    """Every public score under the full protocol with present provenance, oldest first, in chunks."""
    fields = [column.field for column in SCORES.values()]
    later = summaries.later_steps()
    for values in _public().order_by("id").values_list(*fields).iterator(chunk_size=2000):
        row = dict(zip(SCORES, values, strict=True))
        sample = (row["run"], row["target"], row["problem"], row["sample"])
        yield row | {
            "submission": str(row["submission"]),
            "last": row["step"] >= later.get(sample, 0),
            "mechanisms": summaries.mechanism_names(row["mechanisms"]),
            "created_at": row["created_at"].isoformat(),
        }


def run_rows() -> Iterator[dict[str, Any]]:
    """Every run on every target and size that has a score there, in the order of their numbers."""
    day = Coalesce("run__date", TruncDate("run__created_at"))
    runs = summaries.ensure(summaries.seen()).annotate(day=day).order_by("run_id", "target__slug", "size")
    waits = set(summaries.on_their_way().values_list("run_id", "target_id"))
    fields = [column.field for name, column in RUNS.items() if name != "complete"]
    names = [name for name in RUNS if name != "complete"]
    for key, values in zip(runs.values_list("run_id", "target_id"), runs.values_list(*fields), strict=True):
        row = dict(zip(names, values, strict=True))
        yield row | {"date": row["date"].isoformat(), "complete": key not in waits}


def card() -> dict[str, Any]:
    """What a reader must know to compute with the data, as plain data."""
    return {
        "kind": "card",
        "schema": SCHEMA,
        "title": "ParallelKernelBench scores",
        "site": settings.SITE_NAME,
        "protocol_version": PROTOCOL_VERSION,
        "licence": settings.DATA_LICENCE,
        "track": summaries.track(),
        "columns": {name: column.meaning for name, column in SCORES.items()},
        "units": {name: column.unit for name, column in SCORES.items() if column.unit},
        "run_columns": {name: column.meaning for name, column in RUNS.items()},
    }


def json_lines() -> Iterator[str]:
    """The scores as they are now, as JSON lines. The first line is the data card's head."""
    yield json.dumps(card()) + "\n"
    yield from lines_of(rows())


def lines_of(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Rows as JSON lines."""
    for row in found:
        yield json.dumps(row) + "\n"


def data_card() -> str:
    """What the columns mean, where the rows come from and what may be done with them, as Markdown."""
    lines = [
        "# ParallelKernelBench scores",
        "",
        f"Licence: {settings.DATA_LICENCE}",
        "",
        f"Judged by {settings.SITE_NAME} under protocol version {PROTOCOL_VERSION}.",
        "",
        "- `scores`: every public score measured by this portal's judge under its full protocol, on secret inputs,",
        "  against the present revision of its problem. Failed ones are included: they count as failed.",
        "- `runs`: one row per run, target and size; `samples` is what figures are taken over.",
        "- `card.json`: the track (problems that count) and the columns. A problem of the track without a row of",
        "  a run counts as failed for that run.",
        "- Only verified, complete runs of models stand on the model board, of each model, harness and prompt",
        "  variant the newest by date, then by number. Of an agent's sample the last step counts.",
        "- A sample of which no row here is `last` counts as failed: its last step was stopped while it ran, taken",
        "  back or hidden, or failed at an earlier size.",
        "- Only `ranked` rows count as good; the speed of a `provisional` one does not count yet. A speedup that",
        "  differs from 1 by no more than its `noise_floor` is a tie: in a run's figures it counts with at most 1.",
        "- 95 % bands: percentile bootstrap of the mean over the problems of the track, 300 resamples drawn by",
        "  Python's `random.Random(20260601).choices(range(problems), k=problems)`; the limits are the values at",
        "  floor(0.025 × 299) and ceil(0.975 × 299) of the sorted means.",
        "- Figures of other sources (published, imported) are not in here.",
        "- Sources of submissions stay with their authors and are not included.",
        "",
        "## Scores",
        "",
        *_table(SCORES),
        "## Runs",
        "",
        *_table(RUNS),
    ]
    return "\n".join(lines)


def _table(columns: dict[str, Column]) -> list[str]:
    rows = [f"| {name} | {column.unit or '–'} | {column.meaning} |" for name, column in columns.items()]
    return ["| column | unit | meaning |", "|---|---|---|", *rows, ""]
