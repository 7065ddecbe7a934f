"""Idempotency keys. A key belongs to one whole request; what was stored under it says to which.

A zip makes many rows, each with a key of its own, made from the caller's key, the request and the file. So no row is
needed for the zip itself: a request that stored nothing leaves its key free, as a refused single file does.
"""

from __future__ import annotations

import hashlib

from django.db.models import Q

from portal.accounts.models import User
from portal.core.errors import Conflict
from portal.submissions.models import Submission


def used(key: str) -> Q:
    """The rows that a caller's key made: that of one file, or those of a zip."""
    return Q(idempotency_key=key) | Q(idempotency_key__startswith=_zip(key))


def of_member(key: str, request: str, name: str, content: bytes) -> str:
    """Return the key of one file of a zip; `request` is the digest of the whole."""
    return f"{_zip(key)}{request[:32]} {_short(name.encode(), content)}"


def demand_same_zip(*, by: User, key: str, request: str) -> None:
    """Raise Conflict when the key made something for another request than this zip."""
    found = Submission.objects.filter(used(key), author=by)
    if found.exclude(idempotency_key__startswith=f"{_zip(key)}{request[:32]} ").exists():
        raise reused()


def reused() -> Conflict:
    """The refusal of a key that belongs to another request."""
    return Conflict(
        "idempotency.key_reused",
        "This Idempotency-Key was used for another request. Send a new key with a new request.",
        field="Idempotency-Key",
    )


def is_of_member(key: str) -> bool:
    """Whether a key was made here: nobody's own key holds a space."""
    return key.startswith("zip ")


def _zip(key: str) -> str:
    return f"zip {_short(key.encode())} "


def _short(*parts: bytes) -> str:
    """Half a SHA-256 is unique enough, and three fit into the column."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
