"""Every API error is RFC 9457 `application/problem+json`, made in this one place."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, JsonResponse, UnreadablePostError
from django.urls import reverse
from rest_framework import exceptions, status
from rest_framework.response import Response

from portal.core.errors import DomainError, FieldError
from portal.core.fields import UNKNOWN_FIELD
from portal.core.request_id import request_id

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"


def body(
    *,
    status_code: int,
    title: str,
    code: str,
    detail: str,
    errors: list[FieldError] | None = None,
    **extra: object,
) -> dict[str, object]:
    """Return the body of a problem: type, title, status, detail, code, errors, request_id."""
    return {
        "type": "/docs/api/#errors",
        "title": title,
        "status": status_code,
        "detail": detail,
        "code": code,
        "errors": [{"field": e.field, "code": e.code, "message": e.message} for e in errors or []],
        "request_id": request_id.get(),
        **extra,
    }


RETRY_AFTER_S = 5
AGAIN = f"Send the same request again in {RETRY_AFTER_S} seconds; under an Idempotency-Key nothing is taken twice."
MISSING_KEY = "Send your key in the header 'Authorization: Token <key>'. Make one at {url}."


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Turn whatever a view raised into a problem; unknown exceptions are logged and become a 500."""
    headers: dict[str, str] = {}
    if isinstance(exc, DomainError):
        problem = _domain(exc)
        if retry := exc.extra.get("retry_after"):
            headers["Retry-After"] = str(retry)
    elif isinstance(exc, exceptions.APIException):
        if isinstance(exc, exceptions.NotAuthenticated):
            url = context["request"].build_absolute_uri(reverse("accounts:tokens"))
            exc.detail = exceptions.ErrorDetail(MISSING_KEY.format(url=url), "not_authenticated")
        problem = _rest(exc)
        if wait := getattr(exc, "wait", None):
            headers["Retry-After"] = str(int(wait) + 1)
        if challenge := getattr(exc, "auth_header", None):
            headers["WWW-Authenticate"] = challenge
    elif isinstance(exc, Http404):
        problem = _plain(404, "not_found", "There is nothing at this address, or it is not yours to see.")
    elif isinstance(exc, PermissionDenied):
        problem = _plain(403, "not_allowed", "You may not do this.")
    elif isinstance(exc, SuspiciousOperation | UnreadablePostError):
        problem = _plain(400, "malformed", "The request is malformed or was cut short. Send it again, whole.")
    else:
        logger.exception("API view failed", exc_info=exc)
        problem = _fault(exc, headers)
    return Response(problem, status=int(str(problem["status"])), headers=headers, content_type=CONTENT_TYPE)


def _fault(exc: Exception, headers: dict[str, str]) -> dict[str, object]:
    """What is none of the caller's doing; it may be over in a moment where the database is locked or away."""
    if not isinstance(exc, OperationalError):
        return _plain(500, "internal", "Our fault. Please tell us the request_id.")
    headers["Retry-After"] = str(RETRY_AFTER_S)
    return _plain(503, "database.unavailable", f"The database does not answer. {AGAIN}")


def refusal(error: DomainError) -> JsonResponse:
    """Return a refusal as a problem outside of the REST framework (the data twins of pages)."""
    return JsonResponse(_domain(error), status=error.status, content_type=CONTENT_TYPE)


def response(request: HttpRequest, status_code: int, code: str, detail: str) -> JsonResponse:
    """Return a problem outside of the REST framework (unknown API path, malformed request)."""
    return JsonResponse(_plain(status_code, code, detail), status=status_code, content_type=CONTENT_TYPE)


_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    411: "Length required",
    413: "Too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Our fault",
    503: "Not at this moment",
}


def _plain(status_code: int, code: str, detail: str) -> dict[str, object]:
    return body(status_code=status_code, title=_TITLES[status_code], code=code, detail=detail)


def _domain(exc: DomainError) -> dict[str, object]:
    return body(
        status_code=exc.status,
        title=exc.title,
        code=exc.code,
        detail=exc.message,
        errors=exc.errors,
        **exc.extra,
    )


def _rest(exc: exceptions.APIException) -> dict[str, object]:
    if isinstance(exc, exceptions.ValidationError):
        errors = _flatten(exc.detail)
        first = errors[0]
        return body(
            status_code=status.HTTP_422_UNPROCESSABLE_ENTITY,
            title="The input is not acceptable",
            code=first.code if len(errors) == 1 else "invalid",
            detail=f"{first.field}: {first.message}" if first.field else first.message,
            errors=errors,
        )
    codes = exc.get_codes()
    code = codes if isinstance(codes, str) else "invalid"
    return body(
        status_code=exc.status_code,
        title=_TITLES.get(exc.status_code, "Error"),
        code=code,
        detail=str(exc.detail),
        errors=[FieldError(field, str(codes), str(exc.detail))]
        if (field := getattr(exc, "field", ""))
        else None,
    )


def _flatten(detail: Any, path: str = "") -> list[FieldError]:
    """Return DRF's nested error detail as a flat list with dotted field names."""
    if isinstance(detail, dict):
        return [e for key, value in detail.items() for e in _flatten(value, f"{path}.{key}".strip("."))]
    if isinstance(detail, list):
        return [e for value in detail for e in _flatten(value, path)]
    field = path.removesuffix("non_field_errors").strip(".")
    code = getattr(detail, "code", "invalid")
    # A name that is none of ours is the caller's text, and a code is no place for that.
    owner = "request" if code == UNKNOWN_FIELD else field or "request"
    return [FieldError(field, f"{owner}.{code}", str(detail))]
