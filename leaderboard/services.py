"""Writes of the boards: record what was measured. What staff do to it is in review.py."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator.models import Attempt
from leaderboard.models import Score
from leaderboard.ranking import DEFAULT_NOISE_FLOOR, counted_speedup, is_resolved, is_speedup
from problems.models import Target

GRADES = ("full", "partial", "none")


def record_score(*, attempt: Attempt) -> list[Score]:
    """Write one Score per size that a scored attempt measured, and return them all.

    Idempotent: rows that are there already stay as they are. An attempt without a result is a
    ValueError.
    """
    if attempt.exit_reason != Attempt.Exit.SCORED or not attempt.result:
        raise ValueError(f"attempt {attempt.pk} has no result to record")
    scores = []
    with transaction.atomic():
        for cell in attempt.result.get("cells") or [attempt.result]:
            fields = _fields(attempt, cell)
            score, _ = Score.objects.get_or_create(attempt=attempt, size=str(cell["size"]), defaults=fields)
            scores.append(score)
    return scores


def _fields(attempt: Attempt, cell: dict[str, Any]) -> dict[str, Any]:
    """Translate one cell of a result JSON into the columns of a Score."""
    submission = attempt.submission
    timing, roofline, memory = (cell.get(key) or {} for key in ("timing", "roofline", "memory"))
    grade = cell.get("isolation_grade")
    flags = list(cell.get("flags") or [])
    fields = {
        "submission": submission,
        "entrant": submission.run.entrant,
        "run": submission.run,
        "problem": submission.problem,
        "target": submission.target,
        "verdict": cell["verdict"],
        "code": str(cell.get("code") or "")[:80],
        "correct": cell["verdict"] == "correct",
        "protocol": str(cell.get("protocol") or ""),
        "speedup": _number(timing.get("speedup")),
        "speedup_low": _number(timing.get("speedup_low")),
        "speedup_high": _number(timing.get("speedup_high")),
        "noise_floor": _number(timing.get("noise_floor")) or DEFAULT_NOISE_FLOOR,
        "solution_ms": _number(timing.get("solution_ms")),
        "reference_ms": _number(timing.get("reference_ms")),
        "t_roof_ms": _number(roofline.get("t_roof_ms")),
        "utilisation": _number(roofline.get("utilisation")),
        "bound": str(roofline.get("bound") or "")[:20],
        **_peaks(memory),
        "isolation_grade": grade if grade in GRADES else "none",
        "input_set": str(cell.get("input_set") or "")[:16],
        "problem_revision": str((cell.get("problem") or {}).get("revision") or "")[:64],
        "harness_version": attempt.harness_version or str(cell.get("harness_version") or "")[:40],
        "mechanisms": cell.get("mechanisms") or [],
        "flags": flags,
        "created_at": attempt.finished_at or timezone.now(),
    }
    if not is_resolved(flags):
        fields |= _as_tie(fields)
    fields["ranked"] = _may_rank(fields, submission.mode, submission.target)
    return fields


def _peaks(memory: dict[str, Any]) -> dict[str, Any]:
    """Peak memory of the submission and of the reference: on the cards where both were told, else on the host."""
    device = (memory.get("device_peak_bytes"), memory.get("reference_device_peak_bytes"))
    host = (memory.get("peak_bytes"), memory.get("reference_peak_bytes"))
    mine, theirs = device if None not in device else host
    return {"peak_bytes": mine, "reference_peak_bytes": theirs}


def _as_tie(fields: dict[str, Any]) -> dict[str, Any]:
    """What counts of a measurement that cannot be told apart: never faster, and no share of the roofline.

    The interval still holds the figure: it reaches from where it began, or from 1, to where it ended. What
    was measured stays in the result of the attempt.
    """
    speedup, low = fields["speedup"], fields["speedup_low"]
    if speedup is None:
        return {}
    counted = counted_speedup(speedup, fields["flags"])
    return {
        "speedup": counted,
        "speedup_low": None if low is None else min(low, counted),
        "utilisation": None,
    }


def _may_rank(fields: dict[str, Any], mode: str, target: Target) -> bool:
    """Whether a measurement may stand on the board of its target; visibility is asked at each read."""
    measured = fields["correct"] and fields["protocol"] == "paper" and mode == "score" and target.ranked
    interval = (fields["speedup_low"], fields["speedup"], fields["speedup_high"])
    if not measured or not all(is_speedup(value) for value in interval):
        return False
    if not interval[0] <= interval[1] <= interval[2] or fields["input_set"] != "hardened":
        return False
    return not is_official(target) or (fields["isolation_grade"] == "full" and "noisy" not in fields["flags"])


def is_official(target: Target) -> bool:
    """Whether a target's board takes fully isolated, quiet measurements only: all card targets do."""
    return bool(target.spec.get("official")) or target.backend != "gloo"


def _number(value: object) -> float | None:
    """A finite figure, or None for anything else that a result might carry."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None
