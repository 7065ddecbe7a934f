"""The prose of a declaration as blocks of a page: paragraphs and numbered steps."""

import re
from dataclasses import dataclass, field

_STEP = re.compile(r"(\d+)\. (.*)")


@dataclass
class Block:
    """A paragraph (one text), or numbered steps that count from `start`."""

    texts: list[str] = field(default_factory=list)
    start: int | None = None


def blocks(text: str) -> list[Block]:
    """Cut a text: a line "1. …" begins a step, indented lines go on with it, other lines are paragraphs."""
    found: list[Block] = []
    fresh = True
    for line in text.splitlines():
        step = _STEP.fullmatch(line)
        if step:
            if fresh or found[-1].start is None:
                found.append(Block(start=int(step[1])))
            found[-1].texts.append(step[2])
        elif not line.strip():
            fresh = True
            continue
        elif fresh or (found[-1].start is not None and not line.startswith(" ")):
            found.append(Block([line.strip()]))
        else:
            found[-1].texts[-1] += f" {line.strip()}"
        fresh = False
    return found
