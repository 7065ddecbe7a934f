"""From what the judge returns to what the database keeps: one result per submission, made safe to store."""

from __future__ import annotations

import math
from typing import Any

MAX_LOG = 64 * 1024
MAX_STRING = 16 * 1024
MAX_ITEMS = 2000

# Parts of a cell that the submission page shows once, for the cell that decided; boards need none of them.
_ONCE = frozenset(
    {
        "log",
        "trials",
        "ranks",
        "stacks",
        "findings",
        "environment",
        "cells",
        "kernels",
        "mechanism_evidence",
        "look_notes",
        "movement",
    }
)


def combine(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of a submission's sizes: the first that failed decides, else the first.

    The joined result is the deciding cell with ``cells`` added: each size without its bulky parts.
    Raises ValueError without any cell.
    """
    if not cells:
        raise ValueError("a result needs at least one cell")
    decisive = next((cell for cell in cells if cell["verdict"] != "correct"), cells[0])
    brief = [{key: value for key, value in cell.items() if key not in _ONCE} for cell in cells]
    return {**decisive, "cells": brief}


def storable(value: Any, depth: int = 0) -> Any:
    """Copy a JSON value into one that every database takes: no NaN, no NUL, no endless string or list."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return text(value, MAX_STRING)
    if depth > 12:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:MAX_ITEMS]
        return {text(str(key), 200): storable(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [storable(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    return value if isinstance(value, bool | int) or value is None else text(str(value), MAX_STRING)


def text(value: str, limit: int) -> str:
    """Make a string storable: no NUL, no lone surrogate, head and tail kept when it is too long."""
    clean = value.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= limit:
        return clean
    half = limit // 2
    return f"{clean[:half]}\n… {len(clean) - 2 * half} characters left out …\n{clean[-half:]}"


def log_text(log: Any) -> str:
    """Write the ranks' output as one text, a heading per rank."""
    if isinstance(log, str):
        return text(log, MAX_LOG)
    if not isinstance(log, dict):
        return ""
    share = MAX_LOG // max(len(log), 1)
    parts = []
    for name, body in log.items():
        printed = _printed(body)
        if printed.strip():
            parts.append(f"── {name} ──\n{text(printed, share).rstrip()}\n")
    return text("\n".join(parts), MAX_LOG + 1024)


def _printed(body: Any) -> str:
    if isinstance(body, dict):
        head, tail = str(body.get("head") or ""), str(body.get("tail") or "")
        return head if not tail else f"{head}\n…\n{tail}"
    return str(body or "")
