"""The one place where a submission's state changes: a conditional UPDATE, whose row count decides."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.core.errors import StateConflict
from portal.submissions.models import AuditEvent, Submission
from portal.submissions.states import FINAL, State, Verdict, sources_of

_CLEARED_BY_REQUEUE: dict[str, Any] = {"stage": "", "started_at": None}


def move(
    *,
    submission_id: UUID,
    to: State,
    expect: Iterable[State] | None = None,
    verdict: Verdict | None = None,
    code: str = "",
    message: str = "",
    stage: str = "",
    by: Any = None,
    reason: str = "",
) -> None:
    """Move one submission to `to` if it is in a state that allows it; one UPDATE, one audit row.

    `expect` narrows the allowed states further. A verdict goes with `done` and only with it. `by` is the
    user who did it, None for the system. Call it inside the transaction it belongs to. Raises
    StateConflict when the submission was elsewhere (also when it does not exist).
    """
    if (to is State.DONE) != (verdict is not None):
        raise ValueError("a verdict goes with the state done, and only with it")
    allowed = sources_of(to) & frozenset(expect if expect is not None else State)
    now = timezone.now()
    fields: dict[str, Any] = {"state": to.value, "stage": stage}
    if to is State.QUEUED:
        fields |= _CLEARED_BY_REQUEUE
        fields["queued_at"] = Coalesce("queued_at", now)  # a retry keeps its place in the line
    elif to in FINAL:
        fields |= {
            "finished_at": now,
            "verdict": verdict.value if verdict else "",
            "code": code,
            "message": message,
        }
    else:
        fields["started_at"] = Coalesce("started_at", now)
    moved = Submission.objects.filter(pk=submission_id, state__in=[s.value for s in allowed]).update(**fields)
    if not moved:
        raise StateConflict(
            "submission.state_conflict",
            f"The submission is not in a state from which it can become '{to.value}'.",
            wanted=to.value,
        )
    AuditEvent.objects.create(
        actor=by,
        action=f"submission.{to.value}",
        object_type="submission",
        object_id=str(submission_id),
        after={"state": to.value, "verdict": verdict.value if verdict else "", "code": code},
        reason=reason[:300],
    )


def rejudge(*, submission_id: UUID, verdict: Verdict, code: str, message: str, reason: str = "") -> None:
    """Replace the verdict of a submission that is done by that of a re-score; one audit row.

    Call it inside the transaction that stores the new result. Raises StateConflict when it is not done.
    """
    done = Submission.objects.filter(pk=submission_id, state=State.DONE.value)
    before = done.values("verdict", "code").first()
    fields = {"verdict": verdict.value, "code": code, "message": message, "finished_at": timezone.now()}
    if before is None or not done.update(**fields):
        raise StateConflict("submission.state_conflict", "Only a submission that is done can be re-scored.")
    AuditEvent.objects.create(
        action="submission.rejudged",
        object_type="submission",
        object_id=str(submission_id),
        before=before,
        after={"verdict": verdict.value, "code": code},
        reason=reason[:300],
    )
