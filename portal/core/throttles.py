"""Request limits per minute, said in the `RateLimit` headers of every API answer; forms with a password have one too.

A request costs one operation of the cache: it adds one to the count of its reader in the present window. Windows
follow each other on the clock, so that readers, processes and headers agree on when the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from portal.core.errors import TooMany

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase
    from rest_framework.views import APIView

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Counted(NamedTuple):
    """Where a reader stands after a request: `used` of `quota` in a window that ends in `reset` seconds."""

    scope: str
    quota: int
    window: int
    used: int
    reset: int

    @property
    def allowed(self) -> bool:
        """Whether the request was within the limit."""
        return self.used <= self.quota

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of RFC draft 10."""
        left = max(0, self.quota - self.used)
        return {
            "RateLimit-Policy": f'"{self.scope}";q={self.quota};w={self.window}',
            "RateLimit": f'"{self.scope}";r={left};t={self.reset}',
        }


def rate_of(scope: str) -> str:
    """Return the rate of a scope such as `120/min`, read from settings each time."""
    return str(api_settings.DEFAULT_THROTTLE_RATES[scope])


@lru_cache
def parsed(rate: str) -> tuple[int, int]:
    """Return requests and seconds of a rate such as `120/min`. Raises ValueError for anything else."""
    quota, _, period = rate.partition("/")
    if period[:1] not in SECONDS:
        raise ValueError(f"a rate is a number per second, minute, hour or day such as 120/min, not {rate!r}")
    return int(quota), SECONDS[period[0]]


def now() -> float:
    """Return the time in seconds."""
    return time.time()


def count(scope: str, who: str) -> Counted:
    """Count one request of a reader."""
    quota, window = parsed(rate_of(scope))
    number, into = divmod(now(), window)
    used = _one_more(f"throttle:{scope}:{who}:{int(number)}", window)
    return Counted(scope, quota, window, used, max(1, window - int(into)))


def _one_more(key: str, seconds: int) -> int:
    try:
        return cache.incr(key)
    except ValueError:  # the first of the window
        return 1 if cache.add(key, 1, 2 * seconds) else cache.incr(key)


def address_of(request: HttpRequest | Request) -> str:
    """Return what a reader who is not signed in is counted by."""
    return f"a{BaseThrottle().get_ident(request)}"  # type: ignore[arg-type]


def reader_of(request: HttpRequest | Request) -> str:
    """Return what a reader is counted by, over the API and on pages alike."""
    known = request.user and request.user.is_authenticated
    return f"u{request.user.pk}" if known else address_of(request)


def demand(scope: str, request: HttpRequest) -> None:
    """Count one request for a page. Raises TooMany when the window is full."""
    if not (now := count(scope, reader_of(request))).allowed:
        told = f"You sent as often as we take it for now. Try again in {now.reset} seconds."
        raise TooMany(f"rate.{scope}", told, retry_after=now.reset)


def guarded(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Let an address send a form only so often that guessing passwords, or making accounts, leads nowhere."""

    @wraps(view)
    def counted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST" and not (now := count("sign", address_of(request))).allowed:
            told = f"From your address this was tried too often. Try again in {now.reset} seconds."
            raise TooMany("rate.sign", told, retry_after=now.reset)
        return view(request, *args, **kwargs)

    return counted


class ScopeThrottle(BaseThrottle):
    """Counts a request of a user (or an address) in the scope `submit`, `user` or `anon`.

    A view names another scope for its writes by `write_throttle_scope`. What was counted is put on the request,
    where `RateLimitHeaders` picks it up.
    """

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count this request; false when the window is full."""
        self.counted = count(self._scope(request, view), reader_of(request))
        request._request.rate_limit = self.counted  # type: ignore[attr-defined]
        return self.counted.allowed

    def wait(self) -> float:
        """Return the seconds until the next window."""
        return float(self.counted.reset)

    @staticmethod
    def _scope(request: Request, view: APIView) -> str:
        special = getattr(view, "write_throttle_scope", "")
        if special and request.method not in ("GET", "HEAD", "OPTIONS"):
            return str(special)
        return "user" if request.user and request.user.is_authenticated else "anon"
