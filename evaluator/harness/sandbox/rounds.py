"""Wait for what the kernel finishes in its own time and tells nobody: ask again, in growing pauses."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.0002, 0.02


def until_none_left(one_round: Callable[[], list[T]], limit_s: float) -> list[T]:
    """Repeat a round, which returns what still stands in the way, until it returns nothing.

    Gives up when for ``limit_s`` seconds nothing has gone, and returns what is left; empty otherwise. The end
    of hundreds of large processes takes its time, and is waited for as long as it goes on.
    """
    deadline, fewest, pause = time.monotonic() + limit_s, sys.maxsize, FIRST_PAUSE_S
    while left := one_round():
        now = time.monotonic()
        if len(left) < fewest:
            deadline, fewest = now + limit_s, len(left)
        if now > deadline:
            return left
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
    return []
