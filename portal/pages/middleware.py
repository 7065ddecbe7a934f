"""Refusals that a page raises become a page that says what to change; those of data twins, a problem."""

import logging
from collections.abc import Callable
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse

from portal.core import query
from portal.core.errors import DomainError
from portal.pages.views import error, refusal

log = logging.getLogger(__name__)

_ON_THEIR_OWN = frozenset({"admin", "api"})
"""Where parameters are read by Django, or by the base of the API's views."""


class RefusalMiddleware:
    """Answer a `DomainError` that a view outside of the API let through."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Refuse a query parameter that the view does not take."""
        match = request.resolver_match
        if request.method not in ("GET", "HEAD") or (match and _ON_THEIR_OWN & set(match.namespaces)):
            return None
        takes = getattr(view, "takes", ())
        if takes is None:
            return None
        try:
            query.only(request.GET, takes)
        except DomainError as refused:
            return refusal(request, refused)
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the answer, None for other exceptions."""
        if isinstance(exception, OperationalError):  # locked, or away for a moment
            log.error("the database did not answer", exc_info=exception)
            return error(request, 503)
        return refusal(request, exception) if isinstance(exception, DomainError) else None
