"""Public pages kept for readers who are not signed in, until anything on a board changes.

The key of a page holds the board version, which every write that changes a board raises in its own
transaction (triggers.py): after the commit no reader finds the old page any more. Pages of somebody who is
signed in, or who has a message waiting, are neither kept nor answered from here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified

from evaluator.harness.version import PROTOCOL_VERSION
from portal.core import throttles

PUBLIC = ("/boards/", "/embed/", "/problems/", "/docs/")
"""Where every page is the same for all who are not signed in; the home page is too."""

LIMITED = ("/api/v1/leaderboards/",)
"""The same in the API, where every answer counts against the limit of its reader."""

SECONDS = 60
"""How long a page is kept while nothing changes; bounds what a page may say about the time."""

MAX_QUERY = 300
MAX_BYTES = 2 * 1024 * 1024
PERSONAL = (settings.SESSION_COOKIE_NAME, "messages")
_OF_READER = ("RateLimit", "RateLimit-Policy")
_OF_BODY = ("Content-Type", "Content-Length", "Content-Disposition")
_CODE = ("portal", "problems", "evaluator", "leaderboard", "templates", "static/css", "static/js", "docs")
_SUFFIXES = {".py", ".html", ".svg", ".css", ".js", ".md", ".toml", ".json"}


class Kept(NamedTuple):
    """An answer as it lies in the cache."""

    headers: list[tuple[str, str]]
    content: bytes
    tag: str
    until: float


def find(key: str) -> Kept | None:
    """An answer that is kept, in this process or where processes share what they keep."""
    kept: Kept | None = caches["near"].get(key)
    if kept is None:
        kept = caches["pages"].get(key)
        if kept is not None:
            caches["near"].set(key, kept, max(0.0, kept.until - time.time()))
    return kept


def put(key: str, kept: Kept) -> None:
    """Keep an answer."""
    for name in ("near", "pages"):
        caches[name].set(key, kept, SECONDS)


def board_version() -> int:
    """A number that rises with every committed write that changes a board."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT COALESCE(SUM(changes), 0) FROM leaderboard_boardversion")
        return int(cursor.fetchone()[0])


@lru_cache(maxsize=1)
def code_version() -> str:
    """Changes when code, templates, styles or documents do: a new deployment shares no page with the old."""
    digest = hashlib.sha256(PROTOCOL_VERSION.encode())
    for folder in _CODE:
        for path in sorted(Path(settings.BASE_DIR, folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                state = path.stat()
                digest.update(f"{path}:{state.st_size}:{state.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def key_of(request: HttpRequest) -> str | None:
    """Where an answer to this request is kept, read before the answer is made; None for what is not kept."""
    query = request.META.get("QUERY_STRING", "")
    if not settings.PAGE_CACHE or request.method not in ("GET", "HEAD") or len(query) > MAX_QUERY:
        return None
    if "HTTP_AUTHORIZATION" in request.META or any(name in request.COOKIES for name in PERSONAL):
        return None
    host = f"{request.scheme}://{request.get_host()}"
    named = f"{host}\n{request.path}\n{query}\n{code_version()}"
    return f"page:{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()}:{board_version()}"


class PageCacheMiddleware:
    """Answers from the cache, and puts there what may be kept. Stands before the session is looked at."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        limited = request.path.startswith(LIMITED)
        public = limited or request.path == "/" or request.path.startswith(PUBLIC)
        key = key_of(request) if public else None
        if key is None or (limited and not _takes_json(request)):
            return self.get_response(request)
        kept = find(key)
        if kept is not None:
            return self._counted(request, kept) if limited else answer(request, kept)
        response = self.get_response(request)
        if not _may_be_kept(response):
            return response
        own = {name: response[name] for name in _OF_READER if name in response}
        for name in own:
            del response[name]
        kept = keep(response)
        if request.method == "GET":  # a view may spare the body that HEAD does not carry
            put(key, kept)
        return _with(answer(request, kept), own)

    def _counted(self, request: HttpRequest, kept: Kept) -> HttpResponse:
        """A kept answer of the API: it counts against the limit of its reader, and the view refuses beyond."""
        counted = throttles.count("anon", throttles.address_of(request))
        if not counted.allowed:
            return self.get_response(request)
        return _with(answer(request, kept), counted.headers)


def _with(response: HttpResponse, headers: dict[str, str]) -> HttpResponse:
    for name, value in headers.items():
        response[name] = value
    return response


def _takes_json(request: HttpRequest) -> bool:
    """Whether a reader of the API accepts what is kept; others get the framework's own refusal."""
    accepted = request.META.get("HTTP_ACCEPT", "") or "*/*"
    return "*/*" in accepted or "application/json" in accepted


def _may_be_kept(response: HttpResponse) -> bool:
    control = response.get("Cache-Control", "")
    return (
        response.status_code == 200
        and not response.streaming
        and not response.cookies
        and not any(word in control for word in ("private", "no-store"))
        and len(response.content) <= MAX_BYTES
    )


def keep(response: HttpResponse) -> Kept:
    """An answer as it is kept: a browser may store it too, but must ask before it shows it again."""
    tag = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response.setdefault("Cache-Control", "no-cache")
    response["ETag"] = tag
    return Kept(list(response.items()), response.content, tag, time.time() + SECONDS)


def answer(request: HttpRequest, kept: Kept) -> HttpResponse:
    """The kept answer, or 304 to a browser that has it."""
    given = request.META.get("HTTP_IF_NONE_MATCH", "")
    if given and kept.tag in (tag.strip().removeprefix("W/") for tag in given.split(",")):
        response: HttpResponse = HttpResponseNotModified()
        headers = [(name, value) for name, value in kept.headers if name not in _OF_BODY]
    else:
        response, headers = HttpResponse(kept.content), kept.headers
    for name, value in headers:
        response[name] = value
    return response
