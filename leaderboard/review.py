"""From a scored attempt to a place: new bests are measured again first, and staff have the last word.

The reference is the record to beat where nobody stands. A score that beats the record is provisional
until a second attempt on a fresh start agrees with it; until then it holds no place. Each write is one
transaction with an explicit actor and one audit row; who may do it is asked from the policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from evaluator.models import Attempt, Rescore
from evaluator.services import order_rescore
from leaderboard.models import Review, Score
from leaderboard.services import record_score
from portal.accounts.models import User
from portal.core.errors import Conflict, NotAllowed
from portal.submissions import policies, standing
from portal.submissions.models import Appeal, AuditEvent, Submission
from portal.submissions.standing import audit, demand_reviewer, reason_of
from problems.models import Problem

MAX_TRIES = 2
"""Second measurements that may disagree before a person has to look."""

REFERENCE = 1.0


def receive(*, attempt: Attempt) -> list[Score]:
    """Record a scored attempt and decide what it stands for. Idempotent; one transaction."""
    with transaction.atomic():
        known = set(Score.objects.filter(attempt=attempt).values_list("size", flat=True))
        scores = record_score(attempt=attempt)
        new = [score for score in scores if score.size not in known]
        if attempt.rescore is not None and attempt.rescore.kind == Rescore.Kind.CONFIRM:
            _hear_witnesses(new)
        elif new:
            _take_in(new, attempt)
    return scores


def _take_in(new: list[Score], attempt: Attempt) -> None:
    """Let the newest attempt's scores replace the older ones, and hold new bests until they are confirmed."""
    current = Score.objects.filter(submission_id=attempt.submission_id, superseded_at=None)
    others = list(current.exclude(attempt=attempt).select_related("attempt"))
    if any(row.attempt.number > attempt.number for row in others):  # told late: a newer result is here
        for score in new:
            _set(score, superseded_at=timezone.now())
        return
    Score.objects.filter(pk__in=[row.pk for row in others]).update(superseded_at=timezone.now())
    for score in new:
        _hold_new_best(score, [row for row in others if row.size == score.size])
    waiting = {score.size for score in new if score.provisional}  # the older place is kept free for these
    _check_first_of({_cell(row) for row in others if row.ranked and row.size not in waiting})


def _hold_new_best(score: Score, older: list[Score]) -> None:
    if not score.ranked or score.speedup is None or score.speedup <= _record_before(score):
        return
    if any(_comparable(row, score) and agrees(row, score) for row in older):
        _set(score, confirmed_at=timezone.now())  # it was measured before, with the same outcome
        return
    _hold(score)


def _hold(score: Score) -> None:
    """Take a score's place away until a second measurement agrees with it."""
    _set(score, provisional=True)
    audit("score.provisional", score.submission, None, size=score.size, speedup=score.speedup)
    _order_confirmation(score)


Cell = tuple[int, int, str]
"""Problem and target by their ids, and a size: where one comes first."""


def _cell(score: Score) -> Cell:
    return score.problem_id, score.target_id, score.size


def check_firsts(submission: Submission) -> None:
    """Look at who comes first wherever a submission has a score: it left the boards, or came back to them."""
    _check_first_of(map(_cell, Score.objects.filter(submission=submission, ranked=True, superseded_at=None)))


def _check_first_of(cells: Iterable[Cell]) -> None:
    """Who comes first without having beaten a record is measured again too, unless that was done before."""
    for problem, target, size in set(cells):
        here = Score.objects.standing().filter(problem_id=problem, target_id=target, size=size)
        first = here.order_by("-speedup", "created_at", "id").first()
        if first is not None and first.confirmed_at is None and (first.speedup or 0.0) > REFERENCE:
            _hold(first)


def _record_before(score: Score) -> float:
    """The speedup to beat: the best that stands from others, else that of the reference itself."""
    others = Score.objects.standing().filter(
        problem_id=score.problem_id, target_id=score.target_id, size=score.size
    )
    best = others.exclude(submission_id=score.submission_id).aggregate(best=Max("speedup"))["best"]
    return REFERENCE if best is None else float(best)


def _comparable(one: Score, other: Score) -> bool:
    names = ("problem_revision", "input_set", "harness_version", "target_id")
    return one.ranked and all(getattr(one, name) == getattr(other, name) for name in names)


def agrees(claim: Score, witness: Score) -> bool:
    """Whether a second measurement bears out the first: within its interval, or within the noise floor."""
    if claim.speedup is None or witness.speedup is None or not witness.ranked:
        return False
    low, high = claim.speedup_low or claim.speedup, claim.speedup_high or claim.speedup
    floor = 1.0 + max(claim.noise_floor, witness.noise_floor)
    return min(low, claim.speedup / floor) <= witness.speedup <= max(high, claim.speedup * floor)


def _hear_witnesses(witnesses: list[Score]) -> None:
    """A confirmation's scores never stand: they confirm what waits, or count as a try against it."""
    again = None
    for witness in witnesses:
        claim = Score.objects.filter(
            submission_id=witness.submission_id, size=witness.size, superseded_at=None, provisional=True
        ).first()
        _set(witness, superseded_at=timezone.now())
        if claim is None:
            continue
        if agrees(claim, witness):
            _confirm(claim, None, "", witness=witness.speedup)
        else:
            _set(claim, tries=claim.tries + 1)
            audit("score.not_confirmed", claim.submission, None, size=claim.size, witness=witness.speedup)
            if claim.tries < MAX_TRIES:
                again = claim
            else:
                _check_first_of([_cell(claim)])
    if again is not None:
        _order_confirmation(again)


def _confirm(claim: Score, by: Any, reason: str, **facts: object) -> None:
    _set(claim, provisional=False, confirmed_at=timezone.now())
    audit("score.confirmed", claim.submission, by, reason, size=claim.size, speedup=claim.speedup, **facts)


def _order_confirmation(score: Score) -> None:
    try:
        order_rescore(
            submission=score.submission, kind=Rescore.Kind.CONFIRM, reason="a new best is measured again"
        )
    except Conflict:
        return  # removed in the meantime: nothing to confirm; staff see it should it come back


def _set(score: Score, **fields: Any) -> None:
    Score.objects.filter(pk=score.pk).update(**fields)
    for name, value in fields.items():
        setattr(score, name, value)


# --- what staff do ---------------------------------------------------------------------------------


def disqualify(*, submission: Submission, by: User, reason: str) -> int:
    """Take a submission off every surface at once; returns how many of its scores stood.

    Raises NotAllowed, InvalidInput without a reason, Conflict when it was removed before.
    """
    with transaction.atomic():
        stood = Score.objects.rankable().filter(submission=submission).count()
        standing.disqualify(by=by, submission=submission, reason=reason)
    return stood


def withdraw(*, submission: Submission, by: User, reason: str = "") -> None:
    """Take one's own finished submission off every surface, for good. Raises NotAllowed, Conflict."""
    standing.withdraw(by=by, submission=submission, reason=reason)


def reinstate(*, submission: Submission, by: User, reason: str) -> None:
    """Undo a disqualification or a withdrawal. Raises NotAllowed, InvalidInput, Conflict."""
    standing.reinstate(by=by, submission=submission, reason=reason)


@transaction.atomic
def confirm(*, submission: Submission, by: User, reason: str) -> int:
    """Let a submission's provisional scores take their places on staff's word; returns how many.

    Raises NotAllowed, InvalidInput without a reason, Conflict when none waits.
    """
    demand_reviewer(by)
    told = reason_of(reason)
    waiting = list(Score.objects.filter(submission=submission, provisional=True, superseded_at=None))
    if not waiting:
        raise Conflict("score.none_provisional", "No score of this submission waits to be confirmed.")
    for score in waiting:
        _confirm(score, by, told)
    return len(waiting)


@transaction.atomic
def mark_reviewed(*, submission: Submission, by: User, reason: str = "") -> None:
    """Note that staff looked at the results of a submission. Raises NotAllowed, Conflict (nothing to see)."""
    demand_reviewer(by)
    note = " ".join(reason.split())[:300]
    waiting = Attempt.objects.filter(submission=submission, exit_reason=Attempt.Exit.SCORED, review=None)
    made = [Review(attempt=attempt, by=by, at=timezone.now(), note=note) for attempt in waiting]
    if not made:
        raise Conflict("review.nothing", "Everything here was looked at.")
    Review.objects.bulk_create(made, ignore_conflicts=True)
    audit("submission.reviewed", submission, by, note, attempts=len(made))


@transaction.atomic
def rescore(*, submission: Submission, by: User, reason: str = "") -> Rescore:
    """Order a new score that replaces the old one. Staff may always; the author once a score is stale.

    Raises NotAllowed, Conflict when it is not done, was removed, or ended by a fault of ours.
    """
    own_and_stale = policies.can_change(by, submission) and is_stale(submission)
    if not (policies.can_review(by) or own_and_stale):
        raise NotAllowed(
            "rescore.not_stale", "Only staff may order this while the scores are current or not yours."
        )
    return _order(submission, by, " ".join(reason.split()) or "asked for")


def is_stale(submission: Submission) -> bool:
    """Whether a score of a submission that would count was measured under other rules than today's."""
    return Score.objects.filter(submission=submission, superseded_at=None).stale().exists()


def _order(submission: Submission, by: User, reason: str) -> Rescore:
    made = order_rescore(submission=submission, kind=Rescore.Kind.ORDER, reason=reason, by=by)
    audit("submission.rescore", submission, by, reason, rescore=made.pk)
    return made


@dataclass(frozen=True, slots=True)
class Batch:
    """Which submissions to score again: of a problem, of a protocol version, or both."""

    problem: str = ""
    harness_version: str = ""
    stale_only: bool = False


class Placed(NamedTuple):
    """What came of a batch."""

    orders: int
    busy: int
    """Left out, since they are measured a second time at this moment."""


@transaction.atomic
def rescore_all(*, batch: Batch, by: User, reason: str) -> Placed:
    """Order new scores for everything that has one and matches; returns how many orders there are now.

    Raises NotAllowed, InvalidInput without a reason, Conflict for a batch that names nothing.
    """
    demand_reviewer(by)
    told = reason_of(reason)
    if not (batch.problem or batch.harness_version):
        raise Conflict("rescore.everything", "Name a problem or a protocol version.")
    orders = busy = 0
    for submission in submissions_of(batch):
        try:
            _order(submission, by, told)
            orders += 1
        except Conflict:
            busy += 1
    AuditEvent.objects.create(
        actor=by,
        action="batch.rescore",
        object_type="batch",
        object_id=(batch.problem or batch.harness_version)[:64],
        after={
            "submissions": orders,
            "busy": busy,
            "problem": batch.problem,
            "harness": batch.harness_version,
        },
        reason=told,
    )
    return Placed(orders, busy)


def submissions_of(batch: Batch) -> list[Submission]:
    """The submissions that a batch means, oldest first; what cannot be scored again is left out."""
    scores = Score.objects.filter(superseded_at=None, submission__mode="score")
    if batch.problem:
        scores = scores.filter(problem__in=Problem.objects.filter(slug=batch.problem))
    if batch.harness_version:
        scores = scores.filter(harness_version=batch.harness_version)
    if batch.stale_only:
        scores = scores.stale()
    able = Submission.objects.filter(state="done", removed="").exclude(
        Q(verdict="infra_error") | Q(source="")
    )
    return list(able.filter(pk__in=scores.values("submission_id")).order_by("created_at", "id"))


@transaction.atomic
def answer_appeal(*, appeal: Appeal, by: User, upheld: bool, text: str) -> Appeal:
    """Answer an appeal; upheld against a rejection, the submission is judged again.

    Raises NotAllowed, InvalidInput without a text, Conflict when it was answered before.
    """
    answered = standing.answer_appeal(by=by, appeal=appeal, upheld=upheld, text=text)
    if upheld and appeal.ground == Appeal.Ground.REJECTED and not answered.submission.removed:
        _order(answered.submission, by, "The appeal was upheld.")
    return answered
