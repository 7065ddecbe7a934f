"""The public data set: the list of its versions, their files, and the order to build a new one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from kombu.exceptions import OperationalError

from leaderboard import export_versions, exports, tasks
from leaderboard.models import ExportVersion
from portal.core import query

PAGE = 20
GONE = (
    "A row of this version was taken back or changed its visibility, so the version is withheld. "
    "Newer versions are listed at /boards/export/."
)


def _listed(request: HttpRequest) -> Any:
    return query.page_of(ExportVersion.objects.all(), PAGE, request.GET)


@query.takes("page")
@require_safe
def versions(request: HttpRequest) -> HttpResponse:
    """All versions, the newest first, and what the columns mean."""
    page = _listed(request)
    context = {
        "page": page,
        "versions": [export_versions.public(version) for version in page],
        "tables": (("Scores", exports.SCORES.items()), ("Runs", exports.RUNS.items())),
        "licence": exports.card()["licence"],
        "board_kind": "export",
    }
    return render(request, "leaderboard/export.html", context)


@query.takes("page")
@require_safe
def versions_json(request: HttpRequest) -> JsonResponse:
    """The same as JSON."""
    page = _listed(request)
    listed = [export_versions.public(version) for version in page]
    return JsonResponse({"page": page.number, "pages": page.paginator.num_pages, "versions": listed})


@require_safe
def version_file(request: HttpRequest, version: int, name: str) -> HttpResponseBase:
    """One file of a version; 410 once something in it was taken back."""
    found = get_object_or_404(ExportVersion, pk=version)
    if name not in found.files:
        raise Http404("There is no such file in a version.")
    if export_versions.withheld(found):
        return HttpResponse(GONE, status=410, content_type="text/plain; charset=utf-8")
    kind = export_versions.TYPES[name.rpartition(".")[2]]
    source = default_storage.open(found.files[name]["path"])
    answer = FileResponse(
        source, as_attachment=True, filename=f"pkb-{found.content_hash[:12]}-{name}", content_type=kind
    )
    answer["Cache-Control"] = "no-store"  # it may be withheld at any moment
    return answer


@login_required
@require_POST
def build(request: HttpRequest) -> HttpResponse:
    """Ask a worker for a new version. Staff only."""
    if not request.user.is_staff:
        raise PermissionDenied
    try:
        tasks.ask_for_export()
    except (OperationalError, OSError):
        messages.error(request, "No worker could be asked; build it with `manage.py build_export`.")
    else:
        messages.success(request, "Asked for a new version. It is listed here once it is built.")
    return redirect("leaderboard:export")
