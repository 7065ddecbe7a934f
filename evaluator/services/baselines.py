"""Keep what stored attempts say about the noise of their host."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator import noise
from evaluator.models import Attempt, Baseline


def record_baselines(*, attempt: Attempt) -> int:
    """Store the comparisons of the reference with itself that an attempt holds; returns how many.

    Idempotent: what is stored stays as it is.
    """
    count = 0
    with transaction.atomic():
        for cell in (attempt.result or {}).get("cells") or [attempt.result or {}]:
            for kind, ratio in _ratios(attempt, cell).items():
                _, made = Baseline.objects.get_or_create(
                    attempt=attempt,
                    size=str(cell.get("size") or "")[:16],
                    kind=kind,
                    defaults={
                        "host_id": attempt.host_id,
                        "problem_id": attempt.submission.problem_id,
                        "log_ratio": ratio,
                        "at": attempt.finished_at or timezone.now(),
                    },
                )
                count += made
    return count


def _ratios(attempt: Attempt, cell: dict[str, Any]) -> dict[str, float]:
    timing = cell.get("timing")
    found = {Baseline.Kind.BLOCKS: noise.block_ratio(timing)}
    if _is_reference(attempt):
        found[Baseline.Kind.AA] = noise.speedup_ratio(timing)
    return {kind.value: ratio for kind, ratio in found.items() if ratio is not None}


def _is_reference(attempt: Attempt) -> bool:
    text = str(attempt.submission.problem.spec.get("reference") or "")
    return bool(text) and hashlib.sha256(text.encode()).hexdigest() == attempt.submission.source_sha256
