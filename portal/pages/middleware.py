"""Refusals that a page raises become a page that says what to change; those of data twins, a problem."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.core.errors import DomainError
from portal.pages.views import refusal


class RefusalMiddleware:
    """Answer a `DomainError` that a view outside of the API let through."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the answer, None for other exceptions."""
        return refusal(request, exception) if isinstance(exception, DomainError) else None
