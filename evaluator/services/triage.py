"""Run the static scan over what was judged and keep its flags. It touches nothing else."""

from __future__ import annotations

import logging

from evaluator.diagnose.triage import scan
from evaluator.harness.source import read_files
from evaluator.models import Attempt

log = logging.getLogger(__name__)


def record_triage(*, attempt: Attempt) -> list[dict[str, object]]:
    """Scan the source of a scored attempt and store the flags; returns them. Scanned once."""
    if attempt.triage is not None:
        return list(attempt.triage)
    submission = attempt.submission
    with submission.source.open("rb") as stored:
        content = stored.read()
    try:
        files = read_files(str(submission.source.name), content)
    except ValueError:
        log.warning("the source of %s cannot be scanned", submission.pk)
        files = {}
    reference = str(submission.problem.spec.get("reference") or "")
    flags = [flag.as_json() for flag in scan(files, reference=reference)]
    Attempt.objects.filter(pk=attempt.pk, triage__isnull=True).update(triage=flags)
    attempt.triage = flags
    return flags
