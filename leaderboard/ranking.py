"""Places on one board: which measurement of an entrant counts, and who shares a place. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

DEFAULT_NOISE_FLOOR = 0.10
"""Relative noise floor that applies until a host has measured its own (design.md section 5)."""

# --- what a measurement tells ---------------------------------------------------------------------


def is_speedup(value: float | None) -> bool:
    """Whether a figure can stand on a board: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0


UNRESOLVED = frozenset({"below_resolution", "noisy"})
"""Flags of a measurement that cannot be told apart: the call was too short, or the machine unsteady."""


def is_resolved(flags: Iterable[str]) -> bool:
    """Whether a measurement says how fast the solution is; else it is a tie with the reference at best."""
    return UNRESOLVED.isdisjoint(flags)


def counted_speedup(speedup: float, flags: Iterable[str]) -> float:
    """The speedup that counts: as measured, but never above 1 where it was not resolved."""
    return speedup if is_resolved(flags) else min(speedup, 1.0)


def is_tie(speedup: float, noise_floor: float) -> bool:
    """Whether a speedup that counts cannot be told from the reference's own spread."""
    return abs(speedup - 1.0) <= noise_floor


def sure_speedup(speedup: float, noise_floor: float) -> float:
    """The speedup that a model's figures take: a tie with the reference is never faster than it."""
    return min(speedup, 1.0) if is_tie(speedup, noise_floor) else speedup


# --- places on one board ------------------------------------------------------------------------


class Standing(Protocol):
    """What a row needs to be placed on a problem board."""

    @property
    def score_id(self) -> int: ...
    @property
    def entrant_id(self) -> int: ...
    @property
    def speedup(self) -> float: ...
    @property
    def order_key(self) -> float: ...
    @property
    def resolved(self) -> bool: ...


class Fast(Protocol):
    """What a row needs to share a place or not."""

    @property
    def speedup(self) -> float: ...


Row = TypeVar("Row", bound=Standing)
Policy = Literal["best", "latest"]


def board_order(row: Standing) -> tuple[float, float, int]:
    """Sort key of a board: faster first, then the earlier one, then the lower id; total and stable."""
    return (-row.speedup, row.order_key, row.score_id)


def one_per_entrant(rows: Iterable[Row], policy: Policy = "best") -> list[Row]:
    """One row per entrant in board order: the fastest (``best``) or the newest (``latest``).

    The fastest is looked for among the measurements that were resolved, if the entrant has any.
    """
    chosen: dict[int, Row] = {}
    for row in rows:
        held = chosen.get(row.entrant_id)
        if held is None or _replaces(row, held, policy):
            chosen[row.entrant_id] = row
    return sorted(chosen.values(), key=board_order)


def _replaces(row: Standing, held: Standing, policy: Policy) -> bool:
    if policy == "latest":
        return (row.order_key, row.score_id) > (held.order_key, held.score_id)
    return (not row.resolved, board_order(row)) < (not held.resolved, board_order(held))


def places(ordered: Sequence[Fast], floors: Sequence[float]) -> list[int]:
    """Place of each row of a board that is in board order: 1, 1, 3, ...

    A row shares the place of the group's first row when their ratio is within the larger of the two
    noise floors (relative, e.g. 0.1). It is held against the first row of the group, not against its
    neighbour, so that a long chain of small steps cannot join the fast to the slow.
    """
    if len(ordered) != len(floors):
        raise ValueError("one noise floor per row is needed")
    result: list[int] = []
    leader = 0
    for index, row in enumerate(ordered):
        if index and row.speedup > ordered[index - 1].speedup:
            raise ValueError("rows must be in board order")
        floor = max(floors[leader], floors[index], 0.0)
        if index and ordered[leader].speedup > row.speedup * (1.0 + floor):
            leader = index
        result.append(leader + 1)
    return result
