"""The model board as JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.core.paginator import Page
from django.db.models import TextField
from django.db.models.functions import Cast

from leaderboard import model_board, model_rows
from leaderboard.model_board import Filters
from leaderboard.model_rows import Contender, ModelRow
from problems.models import Target


def public_row(row: ModelRow) -> dict[str, Any]:
    """A row as JSON shows it: identity and all figures."""
    return identity(row) | dict(row.figures)


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


def document(
    page: Page[Contender], target: Target, size: str, filters: Filters, slugs: Sequence[str] | None = None
) -> str:
    """A page of the board as JSON, with all figures: they go as they are stored, read by nobody on the way."""
    found = model_board.placed(page)
    if slugs is not None:  # over some problems nothing is stored
        rows = model_rows.with_figures(found, slugs, bands=False)
        texts = [json.dumps(row.figures) for row in rows]
    else:
        stored = model_rows.with_kept(found, Cast("figures", TextField()))
        rows, texts = [row for row, _ in stored], [text for _, text in stored]
    lines = [
        f"{json.dumps(identity(row))[:-1]}, {text.lstrip()[1:]}"
        for row, text in zip(rows, texts, strict=True)
    ]
    head = {
        "target": target.slug,
        "size": size,
        "verified": filters.verified,
        "runs": page.paginator.count,
        "page": page.number,
        "pages": page.paginator.num_pages,
    }
    return f'{json.dumps(head)[:-1]}, "rows": [{", ".join(lines)}]}}'


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
