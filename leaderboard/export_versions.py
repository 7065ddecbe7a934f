"""Versions of the data set: built on demand, named by their content, kept on the default storage.

A version is withheld from the moment at which a submission that was judged before it was built is taken
back, hidden, or shown again: what left the boards leaves the files with it, and the next version holds
what is public then.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.cache import caches
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Count, Max, Sum
from django.utils import timezone

from leaderboard import exports, summaries
from leaderboard.models import ExportVersion, RunSummary, Score
from leaderboard.page_cache import board_version

NAMES = ("scores.jsonl", "runs.jsonl", "scores.parquet", "runs.parquet", "card.json", "data_card.md")
TYPES = {
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
}
"""Content type by the end of the name."""


def build() -> ExportVersion:
    """Build the data set as it is now; the version that there is when nothing changed since.

    The rows are those of one moment. Files are stored before the row that names them, and removed again
    when that fails.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo:
        here = Path(folder)
        basis = _write(here)
        digest = _digest(here / name for name in ("scores.jsonl", "runs.jsonl", "card.json"))
        known = ExportVersion.objects.filter(content_hash=digest).first()
        if known is not None:
            return known
        files = {}
        for name in NAMES:
            with (here / name).open("rb") as source:
                path = default_storage.save(f"exports/{digest[:16]}/{name}", File(source))
            undo.callback(default_storage.delete, path)
            files[name] = {
                "path": path,
                "bytes": (here / name).stat().st_size,
                "sha256": _digest([here / name]),
            }
        made, _ = ExportVersion.objects.get_or_create(
            content_hash=digest, defaults={"created_at": timezone.now(), "files": files, **basis}
        )
        if made.files == files:  # else another process stored the same content a moment before
            undo.pop_all()
    return made


def _write(folder: Path) -> dict[str, int]:
    """Write every file of the data set as of one moment; returns what it was taken over."""
    parquet = import_module("leaderboard.parquet")
    summaries.ensure(RunSummary.objects.all())
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost and connection.vendor == "postgresql":
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        basis = visible(Score.objects.aggregate(last=Max("pk"))["last"] or 0)
        card = exports.card()
        counts = {
            "scores": _lines(folder / "scores.jsonl", exports.rows()),
            "runs": _lines(folder / "runs.jsonl", exports.run_rows()),
        }
    for name, columns in (("scores", exports.SCORES), ("runs", exports.RUNS)):
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
            parquet.write(folder / f"{name}.parquet", columns, map(json.loads, lines))
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (folder / "data_card.md").write_text(exports.data_card(), encoding="utf-8")
    return basis | counts


def _lines(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for line in exports.lines_of(rows):
            out.write(line)
            count += 1
    return count


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as source:
            while part := source.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()


def visible(last: int) -> dict[str, int]:
    """How many scores up to an id belong to submissions that are public and stand, and the sum of their ids.

    Changes with nothing else: a score is never rewritten, and re-scores come after it.
    """
    scores = Score.objects.filter(pk__lte=last, submission__removed="", submission__results_public=True)
    found = scores.order_by().aggregate(count=Count("pk"), total=Sum("pk"))
    return {"last_score": last, "basis_count": found["count"], "basis_sum": found["total"] or 0}


def withheld(version: ExportVersion) -> bool:
    """Whether something in a version was taken back since; known anew after each change of a board."""
    key = f"export:{version.pk}:{version.content_hash[:16]}:{board_version()}"
    answer: bool | None = caches["pages"].get(key)
    if answer is None:
        stored = (version.basis_count, version.basis_sum)
        now = visible(version.last_score)
        answer = (now["basis_count"], now["basis_sum"]) != stored
        caches["pages"].set(key, answer, 3600)
    return answer


def public(version: ExportVersion) -> dict[str, Any]:
    """A version as the list shows it."""
    gone = withheld(version)
    files = {name: {k: v for k, v in facts.items() if k != "path"} for name, facts in version.files.items()}
    return {
        "version": version.pk,
        "content_hash": version.content_hash,
        "created_at": version.created_at.isoformat(timespec="seconds"),
        "scores": version.scores,
        "runs": version.runs,
        "withheld": gone,
        "files": {} if gone else files,
    }
