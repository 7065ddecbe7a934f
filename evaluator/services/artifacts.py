"""Files kept beside a result."""

from __future__ import annotations

import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluator.models import Artifact, Attempt
from portal.core.storage import stored

MAX_BYTES = 16 << 20


def keep_artifact(*, token: uuid.UUID, name: str, content: bytes) -> bool:
    """Store a file of a live lease's attempt; False when the lease is gone, the file too large, or kept already."""
    attempt = Attempt.objects.filter(lease_token=token, finished_at=None).first()
    if attempt is None or len(content) > MAX_BYTES:
        return False
    try:
        place = f"artifacts/{attempt.submission_id}/{attempt.number}-{name}"
        with stored(place, content) as path, transaction.atomic():
            Artifact.objects.create(
                attempt=attempt, name=name, file=path, bytes=len(content), created_at=timezone.now()
            )
    except IntegrityError:
        return False
    return True
