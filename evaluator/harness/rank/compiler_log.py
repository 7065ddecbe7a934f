"""Where in a compiler's log its first error stands: c++, its linker and assembler, nvcc and the tools that it runs.

Only the head of a line tells: below an error, or a warning, compilers quote the source, which may speak of errors too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_ERROR = re.compile(
    r"\S+?(?:\(\d+\)|(?::\d+){0,2}): (?:internal compiler |catastrophic |[Ff]atal )?[Ee]rror(?: #[\w-]+)? ?: "
    r"|\w+(?: [^;\n]{1,300}, line \d+;)? (?:error|fatal) *: "
    r"|(?:\S*/)?ld(?:\.\w+)?: (?!warning|NOTE)"
)
MAX_LINE = 1 << 14


def first_error(lines: Iterable[str]) -> tuple[int, int] | None:
    """(Number of the line, letters before the message itself) of the first error; None where there is none."""
    for number, line in enumerate(lines):
        if (head := _ERROR.match(line[:MAX_LINE])) is not None:
            return number, head.end()
    return None


def cut(path: str, limit: int) -> str:
    """A whole log of `limit` bytes at most; of a longer one what follows its first error, or else its end."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        if size > limit:
            at = 0
            while line := stream.readline(MAX_LINE):
                if first_error([line.decode(errors="replace")]) is not None:
                    break
                at += len(line)
            stream.seek(min(at, size - limit))
        return stream.read(limit).decode(errors="replace")
