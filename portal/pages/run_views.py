"""Pages of runs: make one, see how far it is, send it a zip."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.current import signed_in
from portal.core import query, throttles
from portal.core.errors import DomainError, InvalidInput
from portal.pages.forms import RunForm, RunUploadForm
from portal.submissions.models import ModelRun, Submission
from portal.submissions.progress import ProblemProgress, progress_of, targets_of
from portal.submissions.runs import create_run, find_run
from portal.submissions.services import Order
from portal.submissions.uploads import Report, digest_of, submit_many
from problems.models import Target
from problems.selectors import target_slugs

PAGE = 50
DEFAULT_TARGET = "cpu4"
SHOWS = {"all": "All problems", "sent": "Sent", "missing": "Missing"}


@query.takes("page")
@login_required
@never_cache
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """List one's own runs, the newest first."""
    rows = ModelRun.objects.usable_by(signed_in(request)).campaigns().with_counts()
    page = query.page_of(rows.order_by("-created_at", "-id"), PAGE, request.GET)
    return render(request, "submissions/runs.html", {"page": page})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new_run(request: HttpRequest) -> HttpResponse:
    """Make a run for a model or team."""
    form = RunForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            run = create_run(by=signed_in(request), **form.cleaned_data)
        except DomainError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            messages.success(request, f"Run {run} is there. It is a community run until it is verified.")
            return redirect(run)
    return render(request, "submissions/new_run.html", {"form": form}, status=422 if form.errors else 200)


@query.takes("target", "show")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """How far a run is on a target, and a form that takes a zip for it. For its owner and staff."""
    found = _own(request, run_id)
    sent_to = targets_of(found)
    asked = query.choice(
        request.GET, "target", target_slugs(), sent_to[0].slug if sent_to else DEFAULT_TARGET
    )
    show = query.choice(request.GET, "show", SHOWS, "all")
    report, form = None, RunUploadForm(initial={"target": asked, "key": uuid4().hex})
    if request.method == "POST":
        throttles.demand("submit", request)
        form = RunUploadForm(request.POST, request.FILES)
        if form.is_valid() and (report := _upload(request, found, form)):
            asked, form = form.cleaned_data["target"].slug, _next(form)
    target = Target.objects.filter(slug=asked).first()
    progress = progress_of(found, target) if target else None
    rows = [row for row in progress.rows if _is_shown(row, show)] if progress else []
    context: dict[str, Any] = {
        "run": found, "sent_to": sent_to, "report": report, "form": form, "target": target, "progress": progress,
        "show": show, "shows": SHOWS.items(), "rows": rows,
    }  # fmt: skip
    return render(request, "submissions/run.html", context, status=422 if form.errors else 200)


def _next(sent: RunUploadForm) -> RunUploadForm:
    """The form for the next zip: the same choices, but for further samples, under a key of its own."""
    got = sent.cleaned_data
    same = {name: got[name] for name in ("mode", "source_public")}
    return RunUploadForm(initial={**same, "target": got["target"].slug, "key": uuid4().hex})


def _is_shown(row: ProblemProgress, show: str) -> bool:
    return show == "all" or bool(row.sent) == (show == "sent")


def _own(request: HttpRequest, run_id: int) -> ModelRun:
    try:
        return find_run(by=signed_in(request), run_id=run_id)
    except InvalidInput as unknown:
        raise Http404 from unknown


def _upload(request: HttpRequest, run: ModelRun, form: RunUploadForm) -> Report | None:
    """Send the zip's files to the run; what is wrong with the zip as a whole lands in the form.

    The key of the form makes a reload of the answer send nothing twice. It holds for the one request: a browser that
    goes back shows the same form, and another zip or choice sent with it is another request.
    """
    got = form.cleaned_data
    archive = got["file"].read()
    order = Order(
        content=b"",
        filename="",
        problem="",
        target=got["target"].slug,
        mode=got["mode"],
        run_id=run.pk,
        source_public=got["source_public"],
        lane=Submission.Lane.BATCH,
        once=not got["further"],
    )
    order = replace(order, idempotency_key=f"{got['key']}/{digest_of(archive, order)}")
    try:
        return submit_many(by=signed_in(request), archive=archive, order=order)
    except DomainError as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return None
