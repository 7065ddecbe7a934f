"""Rows for tests of the queue and the boards, written straight to the tables."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from evaluator.harness.version import PROTOCOL_VERSION
from portal.accounts.models import User
from portal.submissions.models import Entrant, ModelRun, Submission
from problems.models import Problem, Target

_serial = itertools.count(1)


def user(name: str = "") -> User:
    number = next(_serial)
    return User.objects.create(username=name or f"user{number}")


def staff() -> User:
    return User.objects.create(username=f"staff{next(_serial)}", is_staff=True)


def target(slug: str = "cpu4", **fields: Any) -> Target:
    values = {"title": slug, "ranks": 4, "backend": "gloo", "cells": ["tiny"], "ranked": True, "spec": {}}
    return Target.objects.get_or_create(slug=slug, defaults=values | fields)[0]


def card_target(slug: str = "h100x4") -> Target:
    return target(slug, backend="nccl", cells=["default", "large"], spec={"official": True})


def problem(slug: str = "allreduce", **fields: Any) -> Problem:
    values = {
        "number": Problem.objects.count() + 1,
        "title": slug,
        "level": 1,
        "domain": "primitives",
        "score_revision": "rev1",
        "roofline_revision": "roof1",
    }
    return Problem.objects.get_or_create(slug=slug, defaults=values | fields)[0]


def entrant(name: str = "", **fields: Any) -> Entrant:
    number = next(_serial)
    label = name or f"entrant {number}"
    return Entrant.objects.create(
        name=label, slug=f"{label.replace(' ', '-')}-{number}", kind=fields.pop("kind", "model"), **fields
    )


def run(of: Entrant | None = None, **fields: Any) -> ModelRun:
    number = next(_serial)
    values = {"harness": "single-shot", "name": f"run {number}", "slug": f"run-{number}"}
    return ModelRun.objects.create(entrant=of or entrant(), **(values | fields))


def submission(text: str = "def solution(tensor):\n    return tensor\n", **fields: Any) -> Submission:
    now = timezone.now()
    values: dict[str, Any] = {
        "author": fields.get("author") or user(),
        "run": fields.get("run") or run(),
        "problem": fields.get("problem") or problem(),
        "target": fields.get("target") or target(),
        "mode": "score",
        "state": "queued",
        "queued_at": now,
        "source_name": "solution.py",
        "source_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "source_bytes": len(text),
        "sample": next(_serial),
    }
    row = Submission(**(values | fields))
    row.source.save("solution.py", ContentFile(text.encode()), save=False)
    row.save(force_insert=True)
    return row


def result(
    verdict: str = "correct", *, size: str = "tiny", speedup: float = 2.0, **fields: Any
) -> dict[str, Any]:
    """What the judge returns for one size, in the shape of design.md section 5."""
    timed = verdict == "correct"
    values: dict[str, Any] = {
        "schema": 1,
        "problem": {"slug": "allreduce", "revision": "rev1", "title": "allreduce"},
        "target": "cpu4",
        "size": size,
        "input_set": "hardened",
        "protocol": "paper",
        "verdict": verdict,
        "code": "" if timed else f"{verdict}.example",
        "message": "" if timed else "It went wrong.",
        "rank": None,
        "trials": [],
        "timing": {
            "solution_ms": 1.0,
            "reference_ms": speedup,
            "speedup": speedup,
            "speedup_low": speedup * 0.95,
            "speedup_high": speedup * 1.05,
        }
        if timed
        else None,
        "roofline": {"t_roof_ms": 0.5, "utilisation": 0.5, "bound": "link", "phases": []} if timed else None,
        "memory": {"peak_bytes": 1000, "reference_peak_bytes": 2000},
        "mechanisms": [],
        "findings": [],
        "isolation_grade": "full",
        "environment": {"host": "test"},
        "flags": [],
        "harness_version": PROTOCOL_VERSION,
        "log": {"rank 0": "hello"},
    }
    return values | fields
