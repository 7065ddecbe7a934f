"""The one message that goes up from here: an attempt was scored and its result is committed."""

from __future__ import annotations

from django.dispatch import Signal

attempt_scored = Signal()
"""Sent with ``attempt=Attempt`` after commit, at least once; listeners must be idempotent."""
