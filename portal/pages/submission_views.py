"""Pages of submissions: send, list, watch, act."""

import re
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from leaderboard.models import Score
from portal.accounts.current import signed_in
from portal.core import query
from portal.core.errors import DomainError, NotFound
from portal.pages import profile, standing_page, submission_page
from portal.pages.forms import MineForm, SubmitForm
from portal.submissions import policies, services
from portal.submissions.models import Entrant, ModelRun, Submission
from portal.submissions.states import LIVE, Verdict
from portal.submissions.validation import MAX_BYTES
from problems.models import Problem
from problems.selectors import target_slugs

PAGE = 50
NUMBER = re.compile("[0-9]{1,4}")
DEFAULT_TARGET = "cpu4"


def _visible(request: HttpRequest, submission_id: UUID) -> Submission:
    found = Submission.objects.visible_to(request.user).with_names().filter(pk=submission_id).first()
    if found is None:
        raise Http404
    return found


@query.takes("problem", "target", "run", "from")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def submit_form(request: HttpRequest) -> HttpResponse:
    """Send one source; errors come back beside their field."""
    if request.method != "POST":
        initial = _initial(request)
        form = SubmitForm(user=signed_in(request), initial=initial)
        context = _submit_context(request, form) | {"was_zip": initial.get("was_zip", False)}
        return render(request, "submissions/submit.html", context)
    form = SubmitForm(request.POST, request.FILES, user=signed_in(request))
    if form.is_valid():
        try:
            accepted = services.submit(by=signed_in(request), order=_order(form))
        except DomainError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            if accepted.notice:
                messages.warning(request, accepted.notice)
            return redirect(accepted.submission)
    return render(request, "submissions/submit.html", _submit_context(request, form), status=422)


def _submit_context(request: HttpRequest, form: SubmitForm) -> dict[str, Any]:
    return {"form": form, "quota": policies.quota_of(signed_in(request)), "max_bytes": MAX_BYTES}


def _order(form: SubmitForm) -> services.Order:
    got = form.cleaned_data
    upload = got["file"]
    # A browser sends every line end of a text field as CRLF, whatever was pasted.
    pasted = got["source"].replace("\r\n", "\n").encode()
    content = upload.read(MAX_BYTES + 1) if upload is not None else pasted
    return services.Order(
        content=content,
        filename=upload.name if upload is not None else "solution.py",
        source_field="file" if upload is not None else "source",
        problem=got["problem"].slug,
        target=got["target"].slug,
        mode=got["mode"],
        size=got["size"],
        run_id=got["run"].pk if got["run"] else None,
        model=got["model"],
        source_public=got["source_public"],
    )


def _initial(request: HttpRequest) -> dict[str, Any]:
    """Return what to fill in: `?problem=&target=&run=`, or everything of `?from=` a submission. Raises Http404.

    A run that is asked for goes before that of the submission.
    """
    run = _asked_run(request)
    initial: dict[str, Any] = {
        "problem": query.choice(
            request.GET, "problem", Problem.objects.active().values_list("slug", flat=True)
        ),
        "target": query.choice(request.GET, "target", target_slugs(), DEFAULT_TARGET),
    }
    sent = query.given(request.GET, "from")
    if not sent:
        return initial | (_writer(run) if run else {})
    try:
        before = _visible(request, UUID(sent))
    except ValueError:
        raise query.refuse(
            "from", "invalid", f"`from` is the id of a submission, not {sent[:40]!r}."
        ) from None
    initial |= {"problem": before.problem.slug, "target": before.target.slug, "mode": before.mode}
    initial["size"] = before.size
    if policies.can_view_source(request.user, before):
        initial["was_zip"] = str(before.source.name).endswith(".zip")
        if not initial["was_zip"]:
            with before.source.open("rb") as stream:
                initial["source"] = stream.read().decode("utf-8-sig", "replace")
    if run is None and before.run.entrant.owner_id == request.user.pk:
        run = before.run
    return initial | (_writer(run) if run else {})


def _asked_run(request: HttpRequest) -> ModelRun | None:
    """Return the author's own run that `?run=` names; 400 for others."""
    run_id = query.number(request.GET, "run", low=1, high=10**17, default=0)
    if not run_id:
        return None
    found = ModelRun.objects.usable_by(request.user).filter(pk=run_id).first()
    if found is None:
        raise query.refuse("run", "unknown", "You have no run of this id. Leave `run` out, or see /runs/.")
    return found


def _writer(run: ModelRun) -> dict[str, Any]:
    """Who wrote it, as the form asks: a run, a model by name, or nobody but the author."""
    if run.harness != ModelRun.Harness.UNSORTED:
        return {"run": run.pk}
    return {"model": run.entrant.name} if run.entrant.kind == Entrant.Kind.MODEL else {}


@query.takes(*MineForm.base_fields, "page")
@login_required
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """List one's own submissions, newest first."""
    form = MineForm(request.GET, by=signed_in(request))
    rows = Submission.objects.filter(author=signed_in(request)).with_names()
    query.demand_valid(form, request.GET)
    page = query.page_of(
        _sorted(_narrow(rows, form.cleaned_data), form.cleaned_data["sort"]), PAGE, request.GET
    )
    context = {
        "page": page,
        "form": form,
        "stale": standing_page.stale_among(page.object_list),
        "quota": policies.quota_of(signed_in(request)),
        "figures": standing_page.figures_of(page.object_list),
        "filtered": any(request.GET.get(name) for name in form.fields if name != "sort"),
    }
    return render(request, "submissions/mine.html", context)


def _sorted(rows: QuerySet[Submission], sort: str) -> QuerySet[Submission]:
    if sort == "fastest":
        best = Score.objects.fastest().filter(submission=OuterRef("pk")).values("speedup")[:1]
        return rows.annotate(best=Subquery(best)).order_by(
            F("best").desc(nulls_last=True), "-created_at", "-id"
        )
    orders = {"oldest": ("created_at", "id"), "problem": ("problem__number", "-created_at", "-id")}
    return rows.order_by(*orders.get(sort, ("-created_at", "-id")))


def _narrow(rows: Any, wanted: dict[str, Any]) -> Any:
    if text := wanted["q"].strip():
        named = Q(problem__title__icontains=text) | Q(problem__slug__icontains=text)
        rows = rows.filter(Q(problem__number=int(text)) if NUMBER.fullmatch(text) else named)
    if wanted["target"]:
        rows = rows.filter(target__slug=wanted["target"])
    if wanted["run"]:
        rows = rows.filter(run=wanted["run"])
    state = wanted["state"]
    if state == "live":
        return rows.filter(state__in=[s.value for s in LIVE])
    if state in set(Verdict):
        return rows.filter(verdict=state)
    return rows.filter(state=state) if state else rows


@query.takes("view")
@never_cache
@require_safe
def page(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """One submission, whole: the same parts that the live view sends, and the source."""
    submission = _visible(request, submission_id)
    context = submission_page.context(submission, request.user)
    context |= submission_page.source_context(submission, request.user)
    context |= standing_page.context(submission, request.user)
    context |= profile.context(submission, request.user)
    return render(request, "submissions/page.html", context)


@never_cache
@require_safe
def trace(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Download the trace of a profile."""
    try:
        return profile.trace_download(_visible(request, submission_id), request.user)
    except NotFound as nothing:
        raise Http404 from nothing


@query.takes("n", "seen")
@never_cache
@require_safe
def live(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """The changing part alone, for htmx. `?n=` counts looks without news and slows the next one down."""
    submission = _visible(request, submission_id)
    count = query.number(request.GET, "n", low=0, high=10**6, default=0)
    same = request.GET.get("seen", "") == submission_page.mark_of(submission)
    context = submission_page.context(submission, request.user, looks=count + 1 if same else 0)
    context["live"] = True
    if submission.is_final:
        context |= standing_page.context(submission, request.user)
        context |= profile.context(submission, request.user)
    return render(request, "submissions/_live.html", context)


@login_required
@require_POST
def cancel_submission(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Cancel, then show the page again."""
    submission = _visible(request, submission_id)
    try:
        services.cancel(by=signed_in(request), submission=submission)
        messages.success(request, "Cancelled.")
    except DomainError as error:
        messages.error(request, error.message)
    return redirect(submission)


@login_required
@require_POST
def visibility(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Open or close the source, then show the page again."""
    submission = _visible(request, submission_id)
    wanted = request.POST.get("source_public", "")
    if wanted == "yes" and request.POST.get("sure") != "yes":
        messages.error(request, "The source stays private: tick the box that says you want to publish it.")
    elif wanted in ("yes", "no"):
        try:
            services.set_visibility(
                by=signed_in(request), submission=submission, source_public=wanted == "yes"
            )
            messages.success(
                request, "The source is open to everybody." if wanted == "yes" else "The source is private."
            )
        except DomainError as error:
            messages.error(request, error.message)
    return redirect(submission)


@require_safe
def download(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """The source as it was sent, for those who may see it."""
    submission = _visible(request, submission_id)
    if not policies.can_view_source(request.user, submission):
        raise Http404
    with submission.source.open("rb") as stream:
        content = stream.read()
    answer = HttpResponse(content, content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{submission.download_name}"'
    return answer
