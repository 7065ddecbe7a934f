"""The judge's result of a submission, cut down to what a viewer may see."""

from typing import Any

from evaluator.selectors import last_attempt, result_attempt
from portal.submissions import policies
from portal.submissions.models import Submission

# These quote the author's source, name it by its hash, or hold what it printed; the rest of a result is figures. So
# do what was built of it, unit by unit.
_PRIVATE_PARTS = frozenset(
    ("log", "stacks", "findings", "kernels", "mechanism_evidence", "look_notes", "source_sha256")
)


def result_of(submission: Submission) -> dict[str, Any] | None:
    """Return the whole result, None while there is none. A re-score on its way does not hide it."""
    attempt = result_attempt(submission.pk) if submission.is_final else None
    return attempt.result if attempt else None


def without_private_parts(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result, and its cells, without what tells of the source."""
    kept = {key: value for key, value in result.items() if key not in _PRIVATE_PARTS}
    if isinstance(build := kept.get("build"), dict):
        kept["build"] = {key: value for key, value in build.items() if key != "units"}
    if "cells" in kept:
        kept["cells"] = [without_private_parts(cell) for cell in kept["cells"]]
    return kept


def public_result(submission: Submission, viewer: policies.Viewer) -> dict[str, Any] | None:
    """Return the result as `viewer` may see it, with the seeds that were secret until it was final."""
    result = result_of(submission)
    if result is None or not policies.can_view_result(viewer, submission):
        return None
    return result if policies.can_view_source(viewer, submission) else without_private_parts(result)


def logs_of(submission: Submission) -> dict[str, Any]:
    """Return log and stacks of the newest attempt; `log` is null before there is one."""
    attempt = last_attempt(submission.pk)
    result = (attempt.result if attempt else None) or {}
    return {
        "attempt": attempt.number if attempt else None,
        "log": attempt.log if attempt else None,
        "stacks": result.get("stacks", []),
    }
