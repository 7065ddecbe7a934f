"""The whole public data set, for people who compute their own figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from leaderboard.models import Score
from problems.models import Problem

COLUMNS: dict[str, tuple[str, str]] = {
    "score_id": ("id", "number of the score; rises with time"),
    "submission": ("submission_id", "id of the submission; its page is /submissions/<id>/"),
    "problem": ("problem__slug", "slug of the problem"),
    "target": ("target__slug", "slug of the target (hardware)"),
    "size": ("size", "size of the inputs"),
    "entrant": ("entrant__name", "person, team or model that the score belongs to"),
    "entrant_slug": ("entrant__slug", "stable name of the entrant"),
    "entrant_kind": ("entrant__kind", "person, team or model"),
    "run": ("run_id", "number of the run (campaign)"),
    "harness": ("run__harness", "single-shot, agentic or unsorted"),
    "prompt_variant": ("run__prompt_variant", "prompt variant as the run names it"),
    "verified": ("run__verified", "whether staff or the model's owner vouches for the run"),
    "sample": ("submission__sample", "sample of the run, from 0"),
    "step": ("submission__step", "step of an agent, from 0"),
    "verdict": ("verdict", "what came out"),
    "code": ("code", "stable reason"),
    "ranked": ("ranked", "whether the measurement may stand on a board"),
    "provisional": (
        "provisional",
        "a new best that waits for its second measurement: correct, but its speed does not count yet",
    ),
    "speedup": ("speedup", "reference time over solution time: median of paired blocks"),
    "speedup_low": ("speedup_low", "lower 95 % limit of the speedup"),
    "speedup_high": ("speedup_high", "upper 95 % limit of the speedup"),
    "noise_floor": ("noise_floor", "relative; ratios within it are ties"),
    "solution_ms": ("solution_ms", "milliseconds per call"),
    "reference_ms": ("reference_ms", "milliseconds per call of the reference on the same host"),
    "utilisation": ("utilisation", "roofline time over solution time"),
    "bound": ("bound", "what bounds the roofline"),
    "peak_bytes": (
        "peak_bytes",
        "peak memory of the job, bytes: on the cards, or on the host for CPU targets",
    ),
    "reference_peak_bytes": ("reference_peak_bytes", "the same of the reference, bytes"),
    "isolation_grade": ("isolation_grade", "full, partial or none"),
    "mechanisms": ("mechanisms", "how data was moved, as far as it could be told"),
    "flags": ("flags", "remarks of the judge"),
    "harness_version": ("harness_version", "version of the judge's protocol"),
    "created_at": ("created_at", "when it was scored, UTC"),
}
"""Name in the export: (field, meaning)."""


def rows() -> Iterator[dict[str, Any]]:
    """Every public score under the full protocol with present provenance, oldest first, in chunks."""
    scores = Score.objects.provenance_current().shown().filter(protocol="paper", submission__mode="score")
    fields = [field for field, _ in COLUMNS.values()]
    for values in scores.order_by("id").values_list(*fields).iterator(chunk_size=2000):
        row = dict(zip(COLUMNS, values, strict=True))
        yield row | {"submission": str(row["submission"]), "created_at": row["created_at"].isoformat()}


def json_lines() -> Iterator[str]:
    """The data set as JSON lines. The first line is the data card's head: the track and the columns."""
    track = list(Problem.objects.active().order_by("number").values_list("slug", flat=True))
    card = {"kind": "card", "schema": 1, "track": track, "columns": {n: m for n, (_, m) in COLUMNS.items()}}
    yield json.dumps(card) + "\n"
    for row in rows():
        yield json.dumps(row) + "\n"


def data_card() -> str:
    """What the columns mean, where the rows come from and what may be done with them, as Markdown."""
    lines = [
        "# ParallelKernelBench scores",
        "",
        "One JSON object per line; the first line holds the track (problems that count) and the columns.",
        "",
        "- Rows: every public score measured by this portal's judge under its full protocol, on secret inputs,",
        "  against the present revision of its problem. Failed ones are included: they count as failed.",
        "- A problem of the track without a row of a run counts as failed for that run.",
        "- Only rows of verified runs stand on the model board; only `ranked` rows count as good.",
        "- Figures of other sources (published, imported) are not in here.",
        "- Licence: the figures are facts; sources of submissions stay with their authors and are not included.",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {name} | {meaning} |" for name, (_, meaning) in COLUMNS.items()),
        "",
    ]
    return "\n".join(lines)
