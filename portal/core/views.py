"""Base of every API view: limits are said in headers, tokens must have the scope."""

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import BasePermission, IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.core import problem_json, query


class RateLimitHeaders(APIView):
    """Adds `RateLimit` and `RateLimit-Policy` (RFC draft 10) from what the throttle counted."""

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Any:
        """Put the headers on whatever is answered, errors too."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if counted := getattr(getattr(request, "_request", request), "rate_limit", None):
            for name, value in counted.headers.items():
                answer[name] = value
        return answer


class ApiView(RateLimitHeaders, GenericAPIView):
    """Reading is open, writing needs a signed-in user; rooms add their own permissions."""

    permission_classes: Any = (IsAuthenticatedOrReadOnly,)
    pagination_class: Any = None
    takes: tuple[str, ...] = ()
    """Query parameters beside those of filters and pages."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a query parameter that a reading operation does not have."""
        super().initial(request, *args, **kwargs)
        if request.method in ("GET", "HEAD"):
            pages = ("cursor", "page_size") if self.pagination_class else ()
            filters = getattr(getattr(self, "filterset_class", None), "base_filters", ())
            query.only(request.query_params, [*filters, *self.takes, *pages, "format"])


class NeedsUser(BasePermission):
    """Signed in, for reading too."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Tell whether the request has a user."""
        return bool(request.user and request.user.is_authenticated)


@csrf_exempt
def unknown_path(request: HttpRequest) -> JsonResponse:
    """Answer for API paths that do not exist; it changes nothing, so it needs no form token."""
    slash = "" if request.path.endswith("/") else " Addresses of the API end with a slash."
    text = f"There is no {request.path[:200]}.{slash} The schema is at /api/schema/."
    return problem_json.response(request, 404, "path.unknown", text)
