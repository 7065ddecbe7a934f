"""What a job printed: collected without ever holding it up, kept as head and tail, cleaned for showing."""

from __future__ import annotations

import fcntl
import os
import re
import selectors
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
_CHUNK = 1 << 20

_ESCAPES = re.compile(
    r"\r\n"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # other escapes
)
# C0 without newline and tab, DEL, C1, and the marks that change the direction of text or cannot be seen.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)

NOISE = tuple(
    re.compile(pattern)
    for pattern in (
        r"hostname of the client socket cannot be retrieved",
        r"^\[W.*\] Warning: Unable to resolve hostname to a \(local\) address",
        r"^\[Gloo\] Rank \d+ is connected to \d+ peer ranks",
        r"No CUDA runtime is found, using CUDA_HOME=",
    )
)
"""Lines that tell an author nothing, whatever the job does."""


def clean_text(raw: bytes) -> str:
    """``raw`` as text that is safe to show: UTF-8 with replacement, newlines and tabs the only controls left."""
    text = raw.decode("utf-8", "replace")
    text = _ESCAPES.sub(lambda match: "\n" if match[0] == "\r\n" else "", text)
    return _CONTROLS.sub("", text.replace("\r", "\n"))


def drop_noise(text: str) -> str:
    """``text`` without the lines of ``NOISE``."""
    kept = (line for line in text.split("\n") if not any(pattern.search(line) for pattern in NOISE))
    return "\n".join(kept)


def without_host(text: str) -> str:
    """``text`` without where the host keeps its Python, which may name a person; jobs see it at its own path."""
    return (
        text if sys.base_prefix in ("/", "/usr", "/usr/local") else text.replace(sys.base_prefix, "<python>")
    )


def _shown(raw: bytes) -> str:
    return without_host(drop_noise(clean_text(raw)))


@dataclass(frozen=True)
class StreamText:
    """What is kept of one stream. ``total_bytes`` counts all that was written."""

    text: str
    total_bytes: int
    truncated: bool


class _Stream:
    """Head and tail of one stream of bytes."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = HEAD_BYTES - len(self._head)
        if room:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            chunk = chunk[-TAIL_BYTES:]
            self._tail.append(chunk)
            self._tail_size += len(chunk)
            while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
                self._tail_size -= len(self._tail.popleft())

    def result(self) -> StreamText:
        tail = b"".join(self._tail)[-TAIL_BYTES:]
        left_out = self.total - len(self._head) - len(tail)
        if not left_out:
            return StreamText(_shown(bytes(self._head) + tail), self.total, truncated=False)
        gap = f"\n[... {left_out} bytes left out ...]\n"
        # Both cuts may fall inside a character: its remains are no part of the text.
        head = re.sub(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z", b"", bytes(self._head))
        tail = re.sub(rb"\A[\x80-\xbf]{1,3}", b"", tail)
        return StreamText(_shown(head) + gap + _shown(tail), self.total, truncated=True)


class CappedLog:
    """Reads many pipes in one thread, from ``add`` until each has ended or ``close``.

    A writer waits only while the thread is not scheduled: everything is read, little is kept.
    """

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._selector = selectors.DefaultSelector()
        self._guard = threading.Lock()
        self._ended = threading.Condition(self._guard)
        self._open = 0
        self._closing = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._incoming: list[tuple[int, str]] = []
        self._thread = threading.Thread(target=self._run, name="sandbox-log", daemon=True)
        self._thread.start()

    def add(self, name: str, handle: int) -> None:
        """Collect from the read end ``handle``, of which a duplicate is kept; the caller closes its own.

        Several pipes may go into one name.
        """
        own = os.dup(handle)
        os.set_blocking(own, False)
        with suppress(OSError):  # the per-user limit on pipe memory; smaller is only slower
            fcntl.fcntl(own, fcntl.F_SETPIPE_SZ, _CHUNK)
        with self._guard:
            if self._closing:
                os.close(own)
                raise ValueError("the log is closed")
            self._streams.setdefault(name, _Stream())
            self._incoming.append((own, name))
            self._open += 1
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    os.eventfd_read(self._wake)
                elif not self._read(key.fd, key.data):
                    self._end(key.fd)
            with self._guard:
                if self._closing:
                    break
                for handle, name in self._incoming:
                    self._selector.register(handle, selectors.EVENT_READ, name)
                self._incoming.clear()
        self._shut()

    def _read(self, handle: int, name: str) -> bool:
        """Take what is there; False at the end of the stream."""
        try:
            chunk = os.read(handle, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if chunk:
            with self._guard:
                self._streams[name].add(chunk)
        return bool(chunk)

    def _end(self, handle: int) -> None:
        self._selector.unregister(handle)
        os.close(handle)
        with self._ended:
            self._open -= 1
            self._ended.notify_all()

    def _shut(self) -> None:
        registered = [(key.fd, key.data) for key in self._selector.get_map().values() if key.data is not None]
        for handle, name in [*registered, *self._incoming]:
            # Once: it takes a full pipe, and a writer that still lives must not keep us here.
            self._read(handle, name)
            os.close(handle)
        self._incoming.clear()
        self._selector.close()

    def wait(self, limit_s: float) -> bool:
        """Wait until every stream has ended; False when some has not after ``limit_s``."""
        deadline = time.monotonic() + limit_s
        with self._ended:
            while self._open:
                left = deadline - time.monotonic()
                if left <= 0 or not self._ended.wait(left):
                    return self._open == 0
        return True

    def result(self) -> dict[str, StreamText]:
        """What is kept so far, by name."""
        with self._guard:
            return {name: stream.result() for name, stream in self._streams.items()}

    def close(self) -> None:
        """Take what still lies in the pipes, stop the thread, close everything. Idempotent."""
        with self._guard:
            if self._closing:
                return
            self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def __enter__(self) -> CappedLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
