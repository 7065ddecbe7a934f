"""Who judges for a target now, and what they must refuse. The evaluator knows; this room does not look up at
it, so the composition root hands the answers in (`portal.pages.apps`)."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.core.errors import Conflict
from problems.models import Target


@dataclass(frozen=True)
class Refusal:
    """Why no live host would take a file, and what lifts that."""

    why: str
    remedy: str


@dataclass(frozen=True)
class Evaluators:
    """What the evaluator answers about its hosts."""

    served: Callable[[], Set[int]]
    """Primary keys of the targets that a host in service judges for."""
    refusal: Callable[[int, str], Refusal | None]
    """For a target and the SHA-256 of a `solution.py`: why every live host would refuse it, None when one would not
    (or none is live)."""
    served_at: Callable[[int], Mapping[int, datetime]]
    """For a target: when each author had their last turn there."""
    is_lost: Callable[[UUID], bool]
    """For a submission that runs: whether its host fell silent for longer than a lease, and nobody took it back yet."""


_source: list[Evaluators] = []


def answer_with(evaluators: Evaluators) -> None:
    """Take the functions that answer for the evaluator's hosts."""
    _source[:] = [evaluators]


def served() -> Set[int]:
    """Return the primary keys of the targets that are served now."""
    return _source[0].served() if _source else frozenset()


def served_at(target_id: int) -> Mapping[int, datetime]:
    """Return when each author had their last turn on a target."""
    return _source[0].served_at(target_id) if _source else {}


def is_lost(submission_id: UUID) -> bool:
    """Whether the host that took a submission up is gone, so that nobody judges it now."""
    return bool(_source) and _source[0].is_lost(submission_id)


def notice(target: Target) -> str:
    """Say plainly that nobody serves a target now and what is served instead; empty when a host serves it."""
    now = served()
    if target.pk in now:
        return ""
    names = sorted(Target.objects.active().filter(pk__in=now).values_list("slug", flat=True))
    instead = f"Served now: {', '.join(names)}." if names else "No target at all is served at the moment."
    return (
        f"No host serves {target.slug} now. What you send is kept and waits until a host does; "
        f"you can cancel it at any time. {instead}"
    )


def demand_able_host(target: Target, main_sha256: str) -> None:
    """Raise Conflict when the only live hosts of a target have no sandbox and must refuse this file."""
    refusal = _source[0].refusal(target.pk, main_sha256) if _source else None
    if refusal is not None:
        raise Conflict("host.no_sandbox", refusal.why, field="target", remedy=refusal.remedy)
