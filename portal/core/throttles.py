"""Request limits per minute, said in the `RateLimit` headers of every API answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

if TYPE_CHECKING:
    from rest_framework.views import APIView


class ScopeThrottle(SimpleRateThrottle):
    """A sliding window per user (or address), in the scope `submit`, `user` or `anon`.

    A view names another scope for its writes by `write_throttle_scope`. What is left is put on the
    request, where `RateLimitHeaders` picks it up.
    """

    scope = "anon"
    cache = cache

    def __init__(self) -> None:
        """Wait with the rate: the scope depends on the request."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count this request; false when the window is full."""
        self.scope = self._scope(request, view)
        self.rate = self.get_rate()
        self.num_requests, self.duration = self.parse_rate(self.rate)
        allowed = super().allow_request(request, view)
        used = len(self.history) if allowed else self.num_requests
        oldest = self.history[-1] if self.history else time.time()
        reset = max(0, int(oldest + (self.duration or 0) - time.time()) + 1)
        request._request.rate_limit = (self.scope, self.num_requests, self.duration, used, reset)  # type: ignore[attr-defined]
        return allowed

    def get_rate(self) -> str:
        """Return the rate of the scope from settings, read each time so that tests may change it."""
        from rest_framework.settings import api_settings

        return str(api_settings.DEFAULT_THROTTLE_RATES[self.scope])

    def get_cache_key(self, request: Request, view: APIView) -> str:
        """Return who is counted: the user when known, else the address."""
        user = request.user
        ident = f"u{user.pk}" if user and user.is_authenticated else f"a{self.get_ident(request)}"
        return f"throttle:{self.scope}:{ident}"

    @staticmethod
    def _scope(request: Request, view: APIView) -> str:
        special = getattr(view, "write_throttle_scope", "")
        if special and request.method not in ("GET", "HEAD", "OPTIONS"):
            return str(special)
        return "user" if request.user and request.user.is_authenticated else "anon"
