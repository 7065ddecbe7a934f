"""What an embeddable chart is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Embed:
    """One chart for a frame. ``figure`` is None where there is nothing to draw; ``why_empty`` says why."""

    name: str
    title: str
    figure: dict[str, Any] | None
    caption: str
    page: str
    why_empty: str
