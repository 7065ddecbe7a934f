"""The judge's result of a submission, cut down to what a viewer may see."""

from typing import Any

from evaluator.selectors import last_attempt, result_attempt
from portal.submissions import policies
from portal.submissions.models import Submission

# These quote the author's source or what it printed; the rest of a result is figures.
PRIVATE_PARTS = (
    "log", "stacks", "build_log", "findings", "kernels", "mechanism_evidence", "look_notes",
)  # fmt: skip


def result_of(submission: Submission) -> dict[str, Any] | None:
    """Return the whole result, None while there is none. A re-score on its way does not hide it."""
    attempt = result_attempt(submission.pk) if submission.is_final else None
    return attempt.result if attempt else None


def public_result(submission: Submission, viewer: policies.Viewer) -> dict[str, Any] | None:
    """Return the result as `viewer` may see it, with the seeds that were secret until it was final."""
    result = result_of(submission)
    if result is None or not policies.can_view_result(viewer, submission):
        return None
    hidden = () if policies.can_view_source(viewer, submission) else PRIVATE_PARTS
    return {key: value for key, value in result.items() if key not in hidden}


def logs_of(submission: Submission) -> dict[str, Any]:
    """Return log and stacks of the newest attempt; `log` is null before there is one."""
    attempt = last_attempt(submission.pk)
    result = (attempt.result if attempt else None) or {}
    return {
        "attempt": attempt.number if attempt else None,
        "log": attempt.log if attempt else None,
        "stacks": result.get("stacks", []),
    }
