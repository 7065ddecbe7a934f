"""A zip of many solutions for one run, named as published tools name files: `N_slug_backend.py`.

Each file goes through the same door as a single one; the answer says for each what became of it.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from portal.accounts.models import User
from portal.core.errors import DomainError, InvalidInput
from portal.submissions import bundles, keys, policies, serving
from portal.submissions.models import Submission
from portal.submissions.services import Order, submit
from portal.submissions.states import WAITING
from portal.submissions.validation import MAX_BYTES
from problems import names
from problems.models import Problem
from problems.selectors import unknown_problem

MAX_FILES = 500
MAX_TOTAL = 64 * MAX_BYTES
ACCEPTED, REPLAYED = 202, 200


@dataclass(frozen=True)
class Outcome:
    """What became of one file of the zip."""

    file: str
    status: int
    submission: Submission | None = None
    code: str = ""
    detail: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_replay(self) -> bool:
        """Whether the file was sent before, under the same key or as a sample that counts."""
        return self.status == REPLAYED


@dataclass(frozen=True)
class Report:
    """What became of a zip. `not_tried` counts the files after the one for which the batch lane was full.

    `notice`: that no host serves the target for which files wait.
    """

    outcomes: list[Outcome]
    not_tried: int = 0
    notice: str = ""

    @property
    def taken(self) -> int:
        """How many files were sent now."""
        return sum(outcome.status == ACCEPTED for outcome in self.outcomes)

    @property
    def sent_before(self) -> int:
        """How many files had been sent before and were not taken again."""
        return sum(outcome.is_replay for outcome in self.outcomes)

    @property
    def refused(self) -> int:
        """How many files were refused."""
        return len(self.outcomes) - self.taken - self.sent_before


def submit_many(*, by: User, archive: bytes, order: Order) -> Report:
    """Submit every file of a zip; `order` says what is the same for all. Raises InvalidInput for no such zip.

    With an idempotency key, or an order for `once`, sending the same zip again makes no second submissions. A key
    that made something for another request is a Conflict before anything is stored. Once the batch lane is full no
    further file is tried.
    """
    request = digest_of(archive, order)
    if order.idempotency_key:
        keys.demand_same_zip(by=by, key=order.idempotency_key, request=request)
    catalogue = dict(Problem.objects.active().values_list("slug", "number"))
    packed, infos = _opened(archive)
    outcomes: list[Outcome] = []
    for name, content in _contents(packed, infos):
        outcomes.append(_one(by, name, content, order, request, catalogue))
        if outcomes[-1].code == policies.BATCH_FULL:
            break
    return Report(outcomes, not_tried=len(infos) - len(outcomes), notice=_notice(outcomes))


def digest_of(archive: bytes, order: Order) -> str:
    """Return what makes two zips the same request: their bytes, and what is asked for all files."""
    whole = replace(order, content=archive).digest
    return hashlib.sha256(f"{whole} {order.once}".encode()).hexdigest()


def _notice(outcomes: list[Outcome]) -> str:
    sent = (outcome.submission for outcome in outcomes if outcome.submission)
    waiting = next((submission for submission in sent if submission.state in WAITING), None)
    return serving.notice(waiting.target) if waiting else ""


def _opened(archive: bytes) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    """Return the archive and its files in the order of their names, numbers in them by value.

    Folders and system files are left out.
    """
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
    return packed, sorted(infos, key=lambda info: _by_numbers(info.filename))


def _by_numbers(name: str) -> list[str | int]:
    """Sort key with which `2_x.py` comes before `10_y.py`: text and numbers take turns, so like meets like."""
    parts = re.split(r"([0-9]{1,9})", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def _contents(
    packed: zipfile.ZipFile, infos: list[zipfile.ZipInfo]
) -> Iterator[tuple[str, bytes | DomainError]]:
    """Yield the name and content of each file, or why it cannot be read."""
    left = MAX_TOTAL
    for info in infos:
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
    by: User, name: str, content: bytes | DomainError, order: Order, request: str, catalogue: dict[str, int]
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
            idempotency_key=keys.of_member(key, request, name, content) if key else "",
        )
        accepted = submit(by=by, order=own)
    except DomainError as error:
        return Outcome(shown, error.status, code=error.code, detail=error.message, extra=error.extra)
    return Outcome(
        shown, REPLAYED if accepted.replayed else ACCEPTED, accepted.submission, detail=accepted.notice
    )


def _problem_of(name: str, catalogue: dict[str, int]) -> str:
    """Return the slug that a file's name says; InvalidInput else."""
    try:
        return names.problem_of(name, catalogue)
    except names.BadName as error:
        told = unknown_problem(error.slug) if error.slug else error.message
        raise InvalidInput(error.code, told, field="file") from error
