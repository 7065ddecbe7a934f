"""Every request has an id, and every answer says it; what nothing can be done with is refused first."""

import re
import uuid
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.core import problem_json
from portal.core.request_id import request_id

_ACCEPTABLE = re.compile(r"[A-Za-z0-9-]{8,64}")


class RequestIdMiddleware:
    """Take the caller's `X-Request-Id` when it is plain text, else make one; echo it in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        name = given if _ACCEPTABLE.fullmatch(given) else uuid.uuid4().hex
        token = request_id.set(name)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = name
        return response


class NulMiddleware:
    """Refuse an address with a NUL character in it: no text of a database may hold one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest("There is a NUL character in the address.")
        return self.get_response(request)


class BodyLimitMiddleware:
    """Refuse a body that says it is too large, or does not say how large, before anything reads or stores it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "HTTP_TRANSFER_ENCODING" in request.META:  # Django would take it for an empty body
            told = "The body came in chunks, without its length. Send it whole, with Content-Length."
            return _refused(request, 411, "request.length_required", told)
        if length.isascii() and length.isdigit() and int(length) > settings.REQUEST_MAX_BYTES:
            told = f"At most {settings.REQUEST_MAX_BYTES:,} bytes are taken."
            return _refused(request, 413, "request.too_large", told)
        return self.get_response(request)


def _refused(request: HttpRequest, status: int, code: str, told: str) -> HttpResponse:
    """A problem for programs; for people a page that needs neither their session nor the database."""
    if request.path.startswith("/api/"):
        return problem_json.response(request, status, code, told)
    context = {"code": status, "title": "Not taken", "advice": told, "request_id": request_id.get()}
    return render(None, "bare_error.html", context, status=status)
