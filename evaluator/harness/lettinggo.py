"""What a frozen job has let go of, and the kernel still takes back.

Memory in files that are on their way through Unix sockets, and that nobody can receive any more, is freed by a thread
of the kernel, which no freezer stops: a gigabyte keeps a core at work for a sixth of a second after the turn. The next
turn begins when that is over. That thread may begin late: a turn of the reference in which the frozen job's memory
fell was disturbed. Nobody is blamed: a job may free its memory, only not in another's time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from evaluator.harness.sandbox.rounds import until_none_left

STILL = 128 << 10
"""Bytes by which a frozen job's memory may fall from one look to the next: the kernel's own book-keeping."""
MUCH = 4 << 20
"""Bytes that take the kernel most of a millisecond."""
CALM_S = 0.03
"""How long nothing may fall after a fall: the kernel's thread does not always have a core."""
LIMIT_S = 5.0


class LettingGo:
    """Watches the memory of one job from the end of its turn on."""

    def __init__(self, memory_now: Callable[[], int | None]) -> None:
        """`memory_now`: bytes that the job holds; None where nobody counts them, and then there is no wait."""
        self._memory_now = memory_now
        self._held: int | None = None
        self._fell_at = -math.inf

    def begin(self) -> None:
        """The job has just been frozen."""
        self._held = self._memory_now()

    def wait(self) -> None:
        """Return when the job's memory no longer falls, or after a while."""
        until_none_left(self._falling, LIMIT_S)

    def fell(self) -> bool:
        """Whether the job's memory has fallen since the last look by more than is freed in no time."""
        now = self._memory_now()
        return self._held is not None and now is not None and self._held - now > MUCH

    def _falling(self) -> list[int]:
        before, self._held = self._held, self._memory_now()
        if before is None or self._held is None:
            return []
        now = time.monotonic()
        if before - self._held > STILL:
            self._fell_at = now
        return [self._held] if now - self._fell_at <= CALM_S else []
