"""What a submission's page says of its standing: scores, staleness, flags, twins, appeals, reproduction."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.models import Rescore
from evaluator.selectors import result_attempt
from leaderboard import review_queue
from leaderboard.models import Score
from leaderboard.querysets import INPUT_SET
from portal.submissions import policies, standing
from portal.submissions.models import Appeal, Submission

SHOWN_TWINS, LOOKED_AT = 10, 100
FIRST_CALLS = "correctness"
"""The stage in which a judge makes its first call."""


def context(submission: Submission, viewer: policies.Viewer) -> dict[str, Any]:
    """Return what the part `_standing.html` shows; nothing costs a query before it is final."""
    if not submission.is_final:
        return {}
    scores = list(Score.objects.filter(submission=submission, superseded_at=None).select_related("problem"))
    stale = [why for score in scores if (why := stale_because(score))]
    reviewer = policies.can_review(viewer)
    can_change = policies.can_change(viewer, submission)
    rescore = _open_rescore(submission)
    appeals = list(submission.appeals.all()) if can_change else []
    able = (
        bool(submission.source)
        and submission.state == "done"
        and submission.verdict != "infra_error"
        and not submission.removed
    )
    return {
        "provisional": [score for score in scores if score.provisional],
        "stale": stale[0] if stale else "",
        "rescore": rescore,
        "can_rescore": able and rescore is None and (reviewer or (can_change and bool(stale))),
        "triage": _triage(submission) if can_change else [],
        "twins": _twins(submission, viewer),
        "appeals": appeals,
        "can_appeal": _can_appeal(submission, viewer, appeals),
        "can_withdraw": policies.can_withdraw(viewer, submission) and able,
        "reviewer": reviewer,
        "history": review_queue.history(submission.pk) if reviewer else [],
        "replay": _replay(submission, viewer),
    }


def brief(submission: Submission) -> dict[str, Any]:
    """The standing in three words, as the API gives it."""
    scores = Score.objects.filter(submission=submission, superseded_at=None).select_related("problem")
    found = list(scores) if submission.is_final else []
    rescore = _open_rescore(submission) if submission.is_final else None
    return {
        "provisional": any(score.provisional for score in found),
        "stale": next((why for score in found if (why := stale_because(score))), ""),
        "rescore": rescore.state if rescore else "",
    }


def stale_among(rows: Iterable[Submission]) -> set[UUID]:
    """Which of some submissions have a score that is stale."""
    scores = Score.objects.filter(submission__in=[row.pk for row in rows], superseded_at=None)
    return set(scores.stale().values_list("submission_id", flat=True))


def figures_of(rows: Iterable[Submission]) -> dict[UUID, list[Score]]:
    """The timed scores of some submissions, one a size, the fastest first."""
    found: dict[UUID, list[Score]] = {}
    for score in Score.objects.fastest().filter(submission__in=[row.pk for row in rows]):
        found.setdefault(score.submission_id, []).append(score)
    return found


def stale_because(score: Score) -> str:
    """Why a score no longer counts, in words; empty while it is current."""
    if score.problem_revision != score.problem.score_revision:
        return f"the problem has a new revision ({score.problem.score_revision[:12]})"
    if score.harness_version != PROTOCOL_VERSION:
        was = score.harness_version or "unknown"
        return f"the judge measures by protocol version {PROTOCOL_VERSION} now, this was {was}"
    if score.input_set != INPUT_SET:
        return f"it was measured with the input set {score.input_set or 'unknown'}"
    return ""


def _open_rescore(submission: Submission) -> Rescore | None:
    states = (Rescore.State.QUEUED, Rescore.State.RUNNING)
    return Rescore.objects.filter(submission=submission, state__in=states).first()


def _triage(submission: Submission) -> list[dict[str, Any]]:
    attempt = result_attempt(submission.pk)
    flags = list(attempt.triage or []) if attempt else []
    # What is merely worth knowing of a file that works says nothing of one that does not.
    return flags if submission.verdict == "correct" else [f for f in flags if f.get("weight") != "note"]


def _twins(submission: Submission, viewer: policies.Viewer) -> list[Submission]:
    """Other submissions of the same file, of those whose source the viewer may see: equality tells of a source too."""
    if not policies.can_view_source(viewer, submission):
        return []
    same = Submission.objects.listed_for(viewer).same_source_as(submission).with_names()
    return [twin for twin in same[:LOOKED_AT] if policies.can_view_source(viewer, twin)][:SHOWN_TWINS]


def _can_appeal(submission: Submission, viewer: policies.Viewer, appeals: list[Appeal]) -> bool:
    ground = standing.ground_of(submission)
    made = {appeal.ground for appeal in appeals}
    return bool(ground) and ground not in made and policies.can_appeal(viewer, submission)


def _replay(submission: Submission, viewer: policies.Viewer) -> str:
    """The seed of the deciding run, for whoever may see the result; empty where no call was made."""
    attempt = result_attempt(submission.pk) if policies.can_view_result(viewer, submission) else None
    result = (attempt.result if attempt else None) or {}
    if attempt is None or not any(_are_calls_of(entry, result.get("size")) for entry in attempt.stages):
        return ""
    seeds = result.get("seeds")
    return str(seeds.get("secret") or "") if isinstance(seeds, dict) else ""


def _are_calls_of(entry: dict[str, Any], size: Any) -> bool:
    """Whether a stage is that of the first calls at a size; one that names no size is of any."""
    return entry.get("stage") == FIRST_CALLS and (entry.get("detail") or {}).get("size", size) == size
