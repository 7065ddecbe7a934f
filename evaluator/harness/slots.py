"""Memory between the supervisor and one rank.

On CPU targets a slot is an anonymous memory file whose size is sealed, so that a rank can write bytes into it and
nothing else: it can't shrink it under the supervisor's feet or make it grow.
"""

from __future__ import annotations

import fcntl
import mmap
import os

import torch

F_ADD_SEALS = 1033
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 1, 2, 4


class Place:
    """Bytes that a rank can write too: `flat` is uint8, on the CPU or on a card."""

    def __init__(self, flat: torch.Tensor) -> None:
        self.flat = flat
        self.nbytes = flat.numel()

    def poison(self, pattern: torch.Tensor, start: int) -> None:
        """Overwrite the place with random bytes taken from `pattern` (cyclic, from `start`), on the same device."""
        done = 0
        while done < self.nbytes:
            begin = (start + done) % pattern.numel()
            count = min(pattern.numel() - begin, self.nbytes - done)
            self.flat[done : done + count].copy_(pattern[begin : begin + count])
            done += count

    def snapshot(self, nbytes: int) -> torch.Tensor:
        """A private copy of the first `nbytes` (clipped to the place)."""
        return self.flat[: min(nbytes, self.nbytes)].clone()

    def same(self, earlier: torch.Tensor) -> bool:
        """Whether the place still starts with these bytes."""
        return torch.equal(self.flat[: earlier.numel()], earlier)


class Slot(Place):
    """`nbytes` of host memory, mapped here; `fd` is passed to the rank and then closed by `close_fd`."""

    def __init__(self, name: str, nbytes: int) -> None:
        nbytes = max(nbytes, mmap.PAGESIZE)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, nbytes)
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
        self._map = mmap.mmap(self.fd, nbytes)
        self.buffer = memoryview(self._map)
        super().__init__(torch.frombuffer(self.buffer, dtype=torch.uint8))

    def close_fd(self) -> None:
        """The rank has its own descriptor now."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
