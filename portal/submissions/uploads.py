"""A zip of many solutions for one run, named as published tools name files: `N_slug_backend.py`.

Each file goes through the same door as a single one; the answer says for each what became of it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from portal.accounts.models import User
from portal.core.errors import DomainError, InvalidInput
from portal.submissions import bundles
from portal.submissions.models import Submission
from portal.submissions.services import Order, submit
from portal.submissions.validation import MAX_BYTES
from problems import names
from problems.models import Problem
from problems.selectors import unknown_problem

MAX_FILES = 500
MAX_TOTAL = 64 * MAX_BYTES


@dataclass(frozen=True)
class Outcome:
    """What became of one file of the zip."""

    file: str
    status: int
    submission: Submission | None = None
    code: str = ""
    detail: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


def submit_many(*, by: User, archive: bytes, order: Order) -> list[Outcome]:
    """Submit every file of a zip; `order` says what is the same for all. Raises InvalidInput for no such zip.

    With an idempotency key, sending the same zip again makes no second submissions.
    """
    catalogue = dict(Problem.objects.active().values_list("slug", "number"))
    return [_one(by, name, content, order, catalogue) for name, content in _members(archive)]


def _members(archive: bytes) -> Iterator[tuple[str, bytes | DomainError]]:
    """Yield (name, content) of the files, in the order of their names; folders and system files are left out."""
    try:
        packed = zipfile.ZipFile(io.BytesIO(archive))
    except bundles.DAMAGE as error:
        raise InvalidInput(
            "zip.broken", f"This is no zip archive that can be read: {error}.", field="file"
        ) from error
    infos = [info for info in packed.infolist() if not _is_ignored(info.filename)]
    if not infos:
        raise InvalidInput(
            "zip.no_files", "The zip holds no file. Pack files named N_slug_backend.py.", field="file"
        )
    if len(infos) > MAX_FILES:
        raise InvalidInput(
            "zip.too_many", f"{len(infos)} files; at most {MAX_FILES} are taken.", field="file"
        )
    left = MAX_TOTAL
    for info in sorted(infos, key=lambda info: info.filename):
        try:
            content = bundles.unpack(packed, info, min(left, MAX_BYTES), "file")
        except InvalidInput as error:
            yield info.filename, error
            continue
        left -= len(content)
        yield info.filename, content


def _is_ignored(name: str) -> bool:
    parts = name.split("/")
    return name.endswith("/") or "__MACOSX" in parts or parts[-1].startswith(".")


def _one(
    by: User, name: str, content: bytes | DomainError, order: Order, catalogue: dict[str, int]
) -> Outcome:
    shown = name[:200]
    try:
        if isinstance(content, DomainError):
            raise content
        base = name.rpartition("/")[2]
        key = order.idempotency_key
        own = replace(
            order,
            content=content,
            filename=base,
            problem=_problem_of(base, catalogue),
            idempotency_key=hashlib.sha256(f"{key}/{name}".encode()).hexdigest() if key else "",
        )
        accepted = submit(by=by, order=own)
    except DomainError as error:
        return Outcome(shown, error.status, code=error.code, detail=error.message, extra=error.extra)
    return Outcome(shown, 200 if accepted.replayed else 202, accepted.submission, detail=accepted.notice)


def _problem_of(name: str, catalogue: dict[str, int]) -> str:
    """Return the slug that a file's name says; InvalidInput else."""
    try:
        return names.problem_of(name, catalogue)
    except names.BadName as error:
        told = unknown_problem(error.slug) if error.slug else error.message
        raise InvalidInput(error.code, told, field="file") from error
