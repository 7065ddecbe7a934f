"""What was achieved on problems. The boards and the submissions know; this room does not look up at them, so the
composition root hands their answers in (`portal.pages.apps`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Leader:
    """The best that stands on a problem."""

    speedup: float
    entrants: int
    tied: bool = False
    """Not to be told apart from the reference."""


@dataclass(frozen=True, slots=True)
class Leaders:
    """The best of every problem, by slug, on one target at one size."""

    target: str
    size: str
    by_problem: Mapping[str, Leader]


@dataclass(frozen=True)
class Answers:
    """What the rooms above answer."""

    solved: Callable[[str], Iterable[int]]
    """Primary keys of the problems solved on a target, by its slug."""
    leaders: Callable[[], Leaders | None]
    """The leaders on the usual target; None before there is one."""
    own: Callable[[Any], Mapping[int, str]]
    """For a user: `solved` or `tried` by primary key of the problems of which they sent something."""


_source: list[Answers] = []


def answer_with(answers: Answers) -> None:
    """Take the functions that answer."""
    _source[:] = [answers]


def solved_on(target: str) -> list[int]:
    """Return primary keys of the problems with a correct ranked score on a target; none before boards exist."""
    return list(_source[0].solved(target)) if _source else []


def leaders() -> Leaders | None:
    """Return who leads on each problem on the usual target."""
    return _source[0].leaders() if _source else None


def own(user: Any) -> Mapping[int, str]:
    """Return how far a user is on each problem; nothing for somebody who is not signed in."""
    return _source[0].own(user) if _source and user.is_authenticated else {}
