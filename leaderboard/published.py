"""Figures that others published: shown as such, in a section of their own."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published() -> dict[str, Any]:
    """The published figures as they lie beside this module."""
    return tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))
