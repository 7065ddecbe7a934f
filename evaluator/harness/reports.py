"""What ranks say and how they end, read with suspicion: reports, errors in words, clock readings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluator.harness import claims

MAX_LINE = 1 << 20


@dataclass
class RankReport:
    """What is known of one rank when a job fails; everything in it is a claim or an exit status."""

    rank: int
    state: str = "waiting"
    error: dict[str, Any] | None = None
    exit_code: int | None = None


class JobFailed(Exception):
    """The job can't go on. `kind`: error, exit, deadline, protocol, gone, unstoppable."""

    def __init__(self, kind: str, phase: str, ranks: list[RankReport], note: str = "") -> None:
        super().__init__(f"{kind} in {phase}: {note}")
        self.kind, self.phase, self.ranks, self.note = kind, phase, ranks, note
        self.out_of_memory = False
        self.stacks: dict[int, str] = {}


def told(message: dict[str, Any]) -> dict[str, Any]:
    """A rank's error message as plain words and a line number that can be one."""
    line = message.get("line")
    return {
        "type": claims.words(str(message.get("type")), 80),
        "message": claims.words(str(message.get("message")), 16000),
        "traceback": claims.words(str(message.get("traceback", "")), 16000),
        "outside": message.get("outside") is True,
        "line": line if type(line) is int and 0 < line < MAX_LINE else None,
    }


class Spans(NamedTuple):
    """A rank's own clock readings of one turn, ns of the monotonic clock."""

    woken: int
    """It runs again, the message in its hands."""
    began: int
    """The arguments are made, `solution` begins."""
    returned: int
    ended: int
    """The outputs are in the slot."""


def spans(claim: Any) -> Spans | None:
    """A rank's clock readings where they can be true."""
    if not isinstance(claim, list) or len(claim) != 4 or not all(type(t) is int for t in claim):
        return None
    found = Spans(*claim)
    possible = found.woken >= 0 and found.ended < claims.MAX_INT and list(found) == sorted(found)
    return found if possible else None


def own_frames(text: str) -> str:
    """A stack dump without the shim's frames."""
    return "\n".join(line for line in text.splitlines() if "/opt/pkb/rank/" not in line)


def read_message(data: bytes) -> dict[str, Any]:
    """A message as a dict; anything else becomes an empty one, which no state accepts."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
