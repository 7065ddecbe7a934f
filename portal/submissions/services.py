"""Writes about submissions. Each: one transaction, an explicit actor, policies asked, one audit row."""

import hashlib
import json
import uuid
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from portal.accounts.models import User
from portal.core.errors import Conflict, InvalidInput, NotAllowed, StateConflict
from portal.core.storage import stored
from portal.submissions import cards, doorbell, keys, policies, serving, shown
from portal.submissions.models import AuditEvent, ModelRun, Submission
from portal.submissions.runs import find_run
from portal.submissions.states import LIVE, Mode, State
from portal.submissions.transitions import move
from portal.submissions.validation import Source, read_source, shown_name
from problems.models import Problem, Target
from problems.registry import UnknownProblem, load_problem, load_target
from problems.selectors import find_problem, unknown_problem, unknown_target

__all__ = ["Accepted", "Order", "cancel", "move", "set_visibility", "submit"]


MAX_TRIES = 3


@dataclass(frozen=True)
class Order:
    """What somebody wants to have judged, as the door received it."""

    content: bytes
    filename: str
    problem: str
    target: str
    mode: str = Mode.SCORE
    size: str = ""
    run_id: int | None = None
    model: str = ""
    sample: int | None = None
    step: int = 0
    parent: uuid.UUID | None = None
    source_public: bool = False
    results_public: bool = True
    lane: int = Submission.Lane.INTERACTIVE
    idempotency_key: str = ""
    once: bool = False
    """Whether a file that the run has already as a sample that counts is not taken again (mode `score`)."""
    source_field: str = "file"

    @property
    def digest(self) -> str:
        """Return what makes two requests the same request."""
        facts = {
            "file": hashlib.sha256(self.content).hexdigest(),
            "fields": [
                self.problem, self.target, self.mode, self.size, self.run_id, self.sample, self.step,
                str(self.parent), self.source_public, self.results_public, self.lane,
                *([self.model] if self.model else []),
            ],
        }  # fmt: skip
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True)
class Accepted:
    """A stored submission. `replayed`: it was accepted before, under the same key or as the very same file.

    `notice`: what the author should know of the source, though it was taken.
    """

    submission: Submission
    replayed: bool = False
    notice: str = ""


class _HeldAlreadyError(Exception):
    """The run has the very same file as a sample."""

    def __init__(self, submission: Submission) -> None:
        super().__init__(str(submission))
        self.submission = submission


def submit(*, by: User, order: Order) -> Accepted:
    """Store a submission and its file, queue it, and ring at the target once that is committed.

    Nothing is stored when anything is wrong. Raises InvalidInput (field and what to change), TooMany (quota)
    and Conflict (sample taken, idempotency key used for another request, or no live host may run the file).
    """
    if replay := _replay(by, order):
        return _again(replay, order)
    problem, target = _find_problem(order.problem), _find_target(order.target)
    if held := _held(by, order, problem, target):
        return _again(held, order)
    _check_options(order, problem, target)
    source = read_source(
        filename=order.filename, content=order.content, arity=_arity(problem), field=order.source_field
    )
    serving.demand_able_host(target, source.main_sha256)
    for _ in range(MAX_TRIES):
        new_id = uuid.uuid4()
        try:
            with stored(f"sources/{new_id}/{source.name}", source.content) as path, transaction.atomic():
                made = _insert(by, order, problem, target, source, new_id, path)
            # Not before: reading a large source takes a second, in which the author would stay locked.
            return Accepted(made, notice=cards.notice(source, target))
        except _HeldAlreadyError as known:
            return _again(known.submission, order)
        except IntegrityError:
            if replay := _replay(by, order):  # the same request, accepted a moment ago by another process
                return _again(replay, order)
            if order.sample is not None:
                break  # else somebody took the number we chose: the next one is tried
    raise Conflict(
        "sample.taken",
        f"Sample {order.sample}, step {order.step} of this run, problem and target is there already and is "
        "never replaced. Leave `sample` out to take the next free one.",
        field="sample",
    )


def _insert(
    by: User, order: Order, problem: Problem, target: Target, source: Source, new_id: uuid.UUID, path: str
) -> Submission:
    locked = User.objects.select_for_update().get(pk=by.pk)  # counting and inserting are one step per user
    if held := _held(locked, order, problem, target):  # taken a moment ago from another zip
        raise _HeldAlreadyError(held)
    policies.demand_quota(locked, order.lane)
    run = find_run(by=locked, run_id=order.run_id, model=order.model)
    now = timezone.now()
    submission = Submission.objects.create(
        id=new_id,
        author=locked,
        run=run,
        problem=problem,
        target=target,
        mode=order.mode,
        size=order.size,
        sample=_sample(order, run, problem, target),
        step=order.step,
        parent=_parent(locked, order),
        source=path,
        source_name=shown_name(order.filename, bundle=source.is_bundle),
        source_sha256=source.sha256,
        source_bytes=len(source.content),
        source_public=order.source_public,
        results_public=order.results_public,
        state=State.QUEUED.value,
        lane=order.lane,
        idempotency_key=order.idempotency_key,
        request_digest=order.digest,
        created_at=now,
        queued_at=now,
    )
    AuditEvent.objects.create(
        actor=locked,
        action="submission.submit",
        object_type="submission",
        object_id=str(new_id),
        after={"state": submission.state, "problem": problem.slug, "target": target.slug, "mode": order.mode},
    )
    transaction.on_commit(lambda: doorbell.ring(target.slug))
    return submission


@transaction.atomic
def cancel(*, by: User, submission: Submission, reason: str = "") -> Submission:
    """Cancel what is not final yet; a host that runs it sees that at its next beat.

    Where its author stops what runs already, the stage stays with it: it keeps its sample, as one that failed.
    Not so when its host fell silent: then nobody judges it, and there is nothing to see by which to choose.

    Raises NotAllowed for other people's submissions, StateConflict when it is done or cancelled.
    """
    if not policies.can_change(by, submission):
        raise NotAllowed("submission.not_yours", "Only the author and staff may cancel this submission.")
    seen = Submission.objects.select_for_update().get(pk=submission.pk)
    ran = seen.state == State.RUNNING and by.pk == seen.author_id and not serving.is_lost(seen.pk)
    try:
        move(
            submission_id=submission.pk,
            to=State.CANCELLED,
            code="cancelled.by_user",
            message=f"Cancelled before a verdict. {_counted(seen, ran=ran)}",
            stage=seen.stage if ran else "",
            by=by,
            reason=reason,
        )
    except StateConflict as error:
        submission.refresh_from_db()
        verdict = f" with the verdict {submission.verdict}" if submission.verdict else ""
        raise StateConflict(
            error.code,
            f"It is {submission.state} already{verdict}; only what waits or runs can be cancelled.",
            state=submission.state,
            verdict=submission.verdict,
        ) from error
    submission.refresh_from_db()
    return submission


def _counted(cancelled: Submission, *, ran: bool) -> str:
    """What a cancelled submission still counts for, in words."""
    if ran and cancelled.mode == Mode.SCORE:
        return "A host was judging it, so it keeps its sample of the run, as one that failed."
    if cancelled.lane == Submission.Lane.BATCH:
        return "Nothing was counted."
    return "It counts as sent in the quota of the hour, and for nothing else."


@transaction.atomic
def set_visibility(
    *, by: User, submission: Submission, source_public: bool | None = None, results_public: bool | None = None
) -> Submission:
    """Open or close the source or the results. Raises NotAllowed for other people's submissions."""
    if not policies.can_change(by, submission):
        raise NotAllowed("submission.not_yours", "Only the author and staff may change who sees this.")
    wanted = {"source_public": source_public, "results_public": results_public}
    after = {name: value for name, value in wanted.items() if value is not None}
    before = {name: getattr(submission, name) for name in after}
    if after != before:
        Submission.objects.filter(pk=submission.pk).update(**after)
        AuditEvent.objects.create(
            actor=by,
            action="submission.visibility",
            object_type="submission",
            object_id=str(submission.pk),
            before=before,
            after=after,
        )
        submission.refresh_from_db()
        if before.get("results_public") != after.get("results_public"):
            shown.changed(submission)
    return submission


def _replay(by: User, order: Order) -> Submission | None:
    """Return the submission that this idempotency key made; Conflict when that was another request."""
    if not order.idempotency_key:
        return None
    key = order.idempotency_key
    made = Q(idempotency_key=key) if keys.is_of_member(key) else keys.used(key)
    found = Submission.objects.filter(made, author=by).select_related("problem", "target").first()
    if found and found.request_digest != order.digest:
        raise keys.reused()
    return found


def _held(by: User, order: Order, problem: Problem, target: Target) -> Submission | None:
    """Return the first sample of the run that is the very same file and counts, for an order for `once`.

    None in modes without samples. A sample or step that the order names is another one, whatever its file.
    """
    if not order.once or order.mode != Mode.SCORE:
        return None
    same = Submission.objects.holding_samples().filter(
        run=find_run(by=by, run_id=order.run_id, model=order.model),
        problem=problem,
        target=target,
        step=order.step,
        source_sha256=hashlib.sha256(order.content).hexdigest(),
    )
    if order.sample is not None:
        same = same.filter(sample=order.sample)
    return same.select_related("problem", "target").order_by("sample").first()


def _again(made: Submission, order: Order) -> Accepted:
    """What was accepted before, with the word of then while it can be of use: the first answer may be lost."""
    notice = ""
    if made.state in LIVE:
        source = read_source(filename=order.filename, content=order.content, arity=None)
        notice = cards.notice(source, made.target)
    return Accepted(made, replayed=True, notice=notice)


def _find_problem(slug: str) -> Problem:
    found = find_problem(slug)
    if found is None:
        raise InvalidInput("problem.unknown", unknown_problem(slug), field="problem")
    return found


def _find_target(slug: str) -> Target:
    found = Target.objects.active().filter(slug=slug).first()
    if found is None:
        raise InvalidInput("target.unknown", unknown_target(slug), field="target")
    return found


def _check_options(order: Order, problem: Problem, target: Target) -> None:
    if order.mode not in set(Mode):
        raise InvalidInput(
            "mode.unknown", f"Unknown mode {order.mode[:40]!r}. Modes: {', '.join(Mode)}.", field="mode"
        )
    if order.mode not in (Mode.CHECK, Mode.PROFILE) and not target.spec.get("timed", True):
        raise InvalidInput(
            "mode.not_timed",
            f"{target.slug} checks correctness only and measures no times: send mode=check or mode=profile.",
            field="mode",
        )
    sizes = list(problem.spec.get("sizes", {}))
    if order.size and order.size not in sizes:
        raise InvalidInput(
            "size.unknown",
            f"{problem.slug} has no size {order.size[:40]!r}. Sizes: {', '.join(sizes)}.",
            field="size",
        )
    if order.size and order.mode == Mode.SCORE:
        raise InvalidInput(
            "size.not_with_score",
            f"Mode score runs all ranked sizes of {target.slug} ({', '.join(target.cells)}). Leave `size` out.",
            field="size",
        )
    if order.size and (reason := _too_large(problem, target, order.size)) is not None:
        raise InvalidInput("size.too_large_for_target", reason, field="size")
    if target.ranks not in problem.spec.get("world_sizes", [target.ranks]):
        raise InvalidInput(
            "target.world_size",
            f"{problem.slug} is not defined for the {target.ranks} ranks of {target.slug}.",
            field="target",
        )


def _too_large(problem: Problem, target: Target, size: str) -> str | None:
    """Why the target cannot hold the size, in words; None when it may, or when only the database knows it."""
    try:
        facts, hardware = load_problem(problem.slug), load_target(target.slug)
        return hardware.too_large(facts, size)
    except UnknownProblem:
        return None


def _arity(problem: Problem) -> int | None:
    arguments = problem.spec.get("arguments")
    return len(arguments) if arguments else None


def _sample(order: Order, run: ModelRun, problem: Problem, target: Target) -> int:
    """Return the sample asked for, else the next free one of this run, problem and target.

    One that was freed comes first, since a sample that stays away counts as failed.
    """
    if order.sample is not None:
        return order.sample
    here = Submission.objects.filter(run=run, problem=problem, target=target, mode=Mode.SCORE).order_by()
    held = set(here.holding_samples().values_list("sample", flat=True))
    freed = set(here.values_list("sample", flat=True)) - held
    return min({*freed, 1 + max(held, default=-1)})


def _parent(by: User, order: Order) -> Submission | None:
    if order.parent is None:
        return None
    found = Submission.objects.visible_to(by).filter(pk=order.parent).first()
    if found is None:
        raise InvalidInput("parent.unknown", "There is no such parent submission.", field="parent")
    return found


def live_count() -> int:
    """Count submissions that wait or run, for the status page."""
    return Submission.objects.filter(state__in=[s.value for s in LIVE]).count()
