"""Imported results: the list of them, as a page and as JSON."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard import imports, selectors
from leaderboard.models import ImportedResult
from portal.core import query


def _targets() -> list[str]:
    """Targets that something was imported for."""
    rows = ImportedResult.objects.order_by("target__slug").values_list("target__slug", flat=True)
    return list(rows.distinct())


def _page(request: HttpRequest) -> tuple[str, Page[ImportedResult]]:
    """The target asked for, one that something was imported for, and the page."""
    target = query.choice(request.GET, "target", _targets())
    rows = ImportedResult.objects.order_by("target__slug", "problem__number", "size", *imports.ORDER)
    if target:
        rows = rows.filter(target__slug=target)
    return target, query.page_of(rows, selectors.PAGE, request.GET)


@query.takes("target", "page")
@require_safe
def imported(request: HttpRequest) -> HttpResponse:
    """Everything that was imported, by target and problem."""
    target, page = _page(request)
    context: dict[str, Any] = {
        "target": target,
        "targets": _targets(),
        "page": page,
        "imported": imports.rows_of(page.object_list),
        "board_kind": "imported",
    }
    return render(request, "leaderboard/imported.html", context)


@query.takes("target", "page")
@require_safe
def imported_json(request: HttpRequest) -> JsonResponse:
    """The same as JSON."""
    _, page = _page(request)
    return JsonResponse(document(page))


def document(page: Page[ImportedResult]) -> dict[str, Any]:
    """A page of imported results as plain data."""
    rows = [imports.public_row(row) for row in imports.rows_of(page.object_list)]
    return {"note": imports.NOTE, "page": page.number, "pages": page.paginator.num_pages, "rows": rows}
