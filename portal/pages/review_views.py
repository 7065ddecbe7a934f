"""Pages where people decide: staff's queue and actions, an author's withdrawal, appeal and re-score."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from leaderboard import review, review_queue
from portal.accounts.current import signed_in
from portal.accounts.models import User
from portal.core import query
from portal.core.errors import Conflict, DomainError
from portal.submissions import policies
from portal.submissions import standing as services
from portal.submissions.models import Appeal, Submission
from problems.models import Problem

MAX_TEXT = 4200  # a little more than the services take, so that they can say what is too long


def _field(request: HttpRequest, name: str, limit: int = MAX_TEXT) -> str:
    """Return a field of a form as text that every database takes."""
    return request.POST.get(name, "").replace("\0", "")[:limit]


def _reviewer(request: HttpRequest) -> User:
    user = signed_in(request)
    if not policies.can_review(user):
        raise PermissionDenied
    return user


def _visible(request: HttpRequest, submission_id: UUID) -> Submission:
    found = Submission.objects.visible_to(request.user).with_names().filter(pk=submission_id).first()
    if found is None:
        raise Http404
    return found


def _said(request: HttpRequest, work: Callable[[], object], done: str) -> None:
    """Do it and tell how it went."""
    try:
        work()
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, done)


@query.takes("problem")
@login_required
@never_cache
@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """What waits for staff, the newest decisions, and the forms that order re-scores in bulk."""
    _reviewer(request)
    problems = Problem.objects.active()
    context = {
        "items": review_queue.items(),
        "decisions": review_queue.latest_decisions(),
        "waiting": review_queue.waiting_count(),
        "problems": problems,
        "versions": review_queue.harness_versions(),
        "problem": query.choice(request.GET, "problem", [row.slug for row in problems]),
    }
    return render(request, "review/queue.html", context)


@login_required
@require_POST
def batch(request: HttpRequest) -> HttpResponse:
    """Order new scores for all results of a problem or of a protocol version."""
    user = _reviewer(request)
    chosen = review.Batch(
        problem=_field(request, "problem", 80),
        harness_version=_field(request, "harness_version", 40),
        stale_only=request.POST.get("stale_only") == "yes",
    )
    try:
        placed = review.rescore_all(batch=chosen, by=user, reason=_field(request, "reason"))
    except DomainError as error:
        messages.error(request, error.message)
    else:
        _tell(request, placed)
    return redirect("pages:review")


def _tell(request: HttpRequest, placed: review.Placed) -> None:
    if placed.orders:
        messages.success(
            request,
            f"{_submissions(placed.orders)} to be scored again, after what waits for a first verdict.",
        )
    if placed.busy:
        told = (
            f"{_submissions(placed.busy)} left out, since a second measurement runs at this moment. "
            "Order again once it has ended."
        )
        messages.warning(request, told)
    if not any(placed):
        messages.warning(request, "Nothing matches, so nothing is scored again.")


def _submissions(count: int) -> str:
    return "1 submission is" if count == 1 else f"{count} submissions are"


def _answer(submission: Submission, user: User, text: str, upheld: bool) -> object:
    waiting = submission.appeals.filter(state=Appeal.State.OPEN).first()
    if waiting is None:
        raise Conflict("appeal.none_open", "No appeal of this submission waits for an answer.")
    return review.answer_appeal(appeal=waiting, by=user, upheld=upheld, text=text)


_ACTIONS: dict[str, tuple[Callable[[Submission, User, str], object], str]] = {
    "disqualify": (lambda s, u, r: review.disqualify(submission=s, by=u, reason=r), "Disqualified."),
    "reinstate": (lambda s, u, r: review.reinstate(submission=s, by=u, reason=r), "It stands again."),
    "confirm": (lambda s, u, r: review.confirm(submission=s, by=u, reason=r), "Confirmed by hand."),
    "rescore": (lambda s, u, r: review.rescore(submission=s, by=u, reason=r), "It will be scored again."),
    "reviewed": (lambda s, u, r: review.mark_reviewed(submission=s, by=u, reason=r), "Marked as looked at."),
    "uphold": (lambda s, u, r: _answer(s, u, r, True), "The appeal is upheld."),
    "dismiss": (lambda s, u, r: _answer(s, u, r, False), "The appeal is dismissed."),
}


@login_required
@require_POST
def act(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """One decision of staff about one submission; every one is in the audit log."""
    user = _reviewer(request)
    submission = _visible(request, submission_id)
    chosen = _ACTIONS.get(request.POST.get("action", ""))
    if chosen is None:
        messages.error(request, "There is no such action.")
    else:
        work, done = chosen
        reason = _field(request, "reason")
        _said(request, lambda: work(submission, user, reason), done)
    return redirect("pages:review" if request.POST.get("next") == "queue" else submission)


@login_required
@require_POST
def standing(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """What an author does about the standing of their own submission: withdraw, appeal, score again."""
    submission, user = _visible(request, submission_id), signed_in(request)
    text = _field(request, "text")
    actions: dict[str, tuple[Callable[[], Any], str]] = {
        "withdraw": (
            lambda: review.withdraw(by=user, submission=submission, reason=text),
            "Withdrawn. It left every board and list; this page stays.",
        ),
        "appeal": (
            lambda: services.appeal(by=user, submission=submission, text=text),
            "Your appeal is with us. The answer will be on this page.",
        ),
        "rescore": (
            lambda: review.rescore(submission=submission, by=user, reason=text),
            "It will be scored again, after what waits for a first verdict.",
        ),
    }
    chosen = actions.get(request.POST.get("action", ""))
    if chosen is None:
        messages.error(request, "There is no such action.")
    else:
        _said(request, *chosen)
    return redirect(submission)
