"""Where a submission is (`State`) and what came out of it (`Verdict`): pure tables, no Django.

The values are the words of docs/architecture.md; the database holds them, constraints repeat them.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a submission is."""

    RECEIVED = "received"
    QUEUED = "queued"
    BUILDING = "building"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Verdict(StrEnum):
    """What came out; only a submission that is `done` has one."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    CONTRACT_ERROR = "contract_error"
    BUILD_ERROR = "build_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    REJECTED = "rejected"
    INFRA_ERROR = "infra_error"


class Mode(StrEnum):
    """What the author wants to know."""

    CHECK = "check"
    QUICK = "quick"
    SCORE = "score"
    PROFILE = "profile"


# What a host may do with each state. `building`/`running` go back to `queued` only for faults of ours.
MOVES: dict[State, frozenset[State]] = {
    State.RECEIVED: frozenset({State.QUEUED, State.CANCELLED}),
    State.QUEUED: frozenset({State.BUILDING, State.RUNNING, State.CANCELLED}),
    State.BUILDING: frozenset({State.RUNNING, State.QUEUED, State.DONE, State.CANCELLED}),
    State.RUNNING: frozenset({State.QUEUED, State.DONE, State.CANCELLED}),
    State.DONE: frozenset(),
    State.CANCELLED: frozenset(),
}

FINAL: frozenset[State] = frozenset(state for state, onward in MOVES.items() if not onward)
LIVE: frozenset[State] = frozenset(State) - FINAL
WAITING: frozenset[State] = frozenset({State.RECEIVED, State.QUEUED})
ON_HOST: frozenset[State] = frozenset({State.BUILDING, State.RUNNING})


def sources_of(target: State) -> frozenset[State]:
    """Return the states from which `target` can be reached in one move."""
    return frozenset(state for state, onward in MOVES.items() if target in onward)
