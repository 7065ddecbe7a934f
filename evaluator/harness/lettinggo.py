"""What a frozen job has let go of, and the kernel still takes back.

Memory in files that are on their way through Unix sockets, and that nobody can receive any more, is freed by a thread
of the kernel, which no freezer stops: a gigabyte keeps a core at work for a sixth of a second after the turn. The next
turn begins when that is over. That thread may begin late: a turn of the reference in which the frozen job's memory
fell was disturbed. So was one in which the frozen job used a processor: a timer may end a frozen process (not under
the first freezer), and to take its mappings down is work on its account. Nobody is blamed: a job may free its memory,
only not in another's time.
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
AT_REST_S, AT_WORK_S = 1e-4, 5e-4
"""Processor seconds of a frozen job from one look to the next: so many are none, so many disturb a turn."""
CALM_S = 0.03
"""How long nothing may fall after a fall: the kernel's thread does not always have a core."""
LIMIT_S = 5.0


class LettingGo:
    """Watches the memory of one job, and its use of processors, from the end of its turn on."""

    def __init__(
        self, memory_now: Callable[[], int | None], cpu_now: Callable[[], float | None] = lambda: None
    ) -> None:
        """`memory_now`: bytes that the job holds, `cpu_now`: seconds used. None where nobody counts: no wait for it."""
        self._memory_now, self._cpu_now = memory_now, cpu_now
        self._held: int | None = None
        self._used: float | None = None
        self._fell_at = -math.inf

    def begin(self) -> None:
        """The job has just been frozen."""
        self._held, self._used = self._memory_now(), self._cpu_now()

    def wait(self) -> None:
        """Return when the job's memory no longer falls and it uses no processor, or after a while."""
        until_none_left(self._falling, LIMIT_S)

    def fell(self) -> bool:
        """Whether since the last look the job freed more than is freed in no time, or was at work."""
        freed, used = self._since(self._memory_now(), self._cpu_now())
        return freed > MUCH or used > AT_WORK_S

    def _since(self, held: int | None, used: float | None) -> tuple[int, float]:
        """Bytes freed and seconds used since the last look; 0 of what nobody counts."""
        freed = self._held - held if self._held is not None and held is not None else 0
        worked = used - self._used if self._used is not None and used is not None else 0.0
        return freed, worked

    def _falling(self) -> list[bool]:
        held, used = self._memory_now(), self._cpu_now()
        freed, worked = self._since(held, used)
        self._held, self._used = held, used
        now = time.monotonic()
        if freed > STILL or worked > AT_REST_S:
            self._fell_at = now
        return [True] if now - self._fell_at <= CALM_S else []
