"""Home, problem, documents, status, health and error pages."""

from typing import Any

from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from evaluator import selectors as evaluator
from leaderboard import selectors as boards
from leaderboard.beside import beside
from portal.core import problem_json, query
from portal.core.errors import DomainError
from portal.core.request_id import request_id
from portal.pages import documents
from portal.submissions.models import Submission
from portal.submissions.states import State
from problems.highlight import render as render_code
from problems.models import Problem
from problems.views import problem_context

LATEST = 8
EXAMPLE = """\
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


def home(request: HttpRequest) -> HttpResponse:
    """Say what this is, how to submit, and what came out last."""
    latest = (
        Submission.objects.filter(results_public=True, removed="", state=State.DONE)
        .with_names()
        .order_by("-finished_at")[:LATEST]
    )
    context = {
        "latest": latest,
        "example": render_code(EXAMPLE),
        "problem_count": Problem.objects.active().count(),
    }
    return render(request, "pages/home.html", context)


def problem(request: HttpRequest, slug: str) -> HttpResponse:
    """One problem: what each rank gets and must return, what bounds it, its reference and prompt."""
    if slug.isdecimal() and (numbered := Problem.objects.active().filter(number=int(slug[:9])).first()):
        return redirect(numbered)
    context = problem_context(slug)
    context["board"] = _board_of(context["problem"])
    context["beside"] = beside(context["problem"])
    return render(request, "problems/detail.html", context)


def _board_of(row: Problem) -> boards.ProblemBoard | None:
    """Return the problem's board on the usual target, None before there is any ranked target."""
    target = boards.usual_target()
    if target is None:
        return None
    return boards.problem_board(problem=row, target=target, size=boards.ranked_sizes(target)[0], page=1)


def docs(request: HttpRequest) -> HttpResponse:
    """List the documents."""
    return render(request, "pages/docs.html", {"parts": documents.contents()})


def doc(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one document."""
    document = documents.load(slug)
    if document is None:
        raise Http404
    shown = document.served_at(f"{request.scheme}://{request.get_host()}")
    return render(request, "pages/doc.html", {"document": shown, "parts": documents.contents()})


def measured(request: HttpRequest, name: str) -> HttpResponse:
    """Give a file of figures that a measurement quotes."""
    found = documents.data_file(name)
    if found is None:
        raise Http404
    content, kind = found
    return HttpResponse(content, content_type=kind)


@never_cache
def status(request: HttpRequest) -> HttpResponse:
    """Say which hosts judge, what waits, and since when."""
    context = {"hosts": evaluator.hosts(), "queues": evaluator.queues(), "now": timezone.now()}
    return render(request, "pages/status.html", context)


@query.takes_anything
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer while the process lives."""
    return JsonResponse({"status": "ok"})


@query.takes_anything
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})


_ERRORS = {
    400: ("This request makes no sense to us", "Go back and try again; if a link brought you here, tell us."),
    403: ("Not for you", "You are not allowed to do this. If you had a form open for long, load it again."),
    404: ("Nothing here", "There is nothing at this address, or it is not yours to see."),
    429: ("Too often", "Try again in a minute."),
    500: ("Our fault", "Something broke on our side. It is in our log under the id below."),
    503: ("Not at this moment", "The database does not answer. Go back and try again in a few seconds."),
}


def refusal(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return what a page refuses as a page, and what a data twin (`….json`, `….csv`) refuses as a problem."""
    if "." in request.path.rpartition("/")[2]:
        return problem_json.refusal(error)
    title, _ = _ERRORS.get(error.status, _ERRORS[400])
    context = {"code": error.status, "title": title, "advice": error.message, "request_id": request_id.get()}
    answer = render(request, "pages/error.html", context, status=error.status)
    if retry_after := error.extra.get("retry_after"):
        answer["Retry-After"] = str(retry_after)
    return answer


def error(request: HttpRequest, code: int) -> HttpResponse:
    """Return the error page, or a problem for API paths."""
    title, advice = _ERRORS[code]
    if request.path.startswith("/api/"):
        return problem_json.response(request, code, title.lower().replace(" ", "_"), advice)
    context: dict[str, Any] = {"code": code, "title": title, "advice": advice, "request_id": request_id.get()}
    if code >= 500:  # nothing that could fail once more: no user, no database
        return render(None, "bare_error.html", context, status=code)
    return render(request, "pages/error.html", context, status=code)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400."""
    return error(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return error(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form that was open too long or sent from elsewhere."""
    return error(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """500."""
    return error(request, 500)
