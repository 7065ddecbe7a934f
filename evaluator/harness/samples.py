"""The bundled sample submissions: the only sources that run on a host without a sandbox."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from problems import registry

FOLDER = Path(registry.__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    """One row of `samples.toml`."""

    file: str
    problem: str
    verdict: str
    entrant: str
    about: str

    @property
    def path(self) -> Path:
        return FOLDER / self.file


@cache
def all_samples() -> list[Sample]:
    """In the order of the manifest."""
    path = FOLDER / "samples.toml"
    if not path.exists():
        return []
    return [Sample(**row) for row in tomllib.loads(path.read_text())["samples"]]


@cache
def bundled_hashes() -> frozenset[str]:
    """SHA-256 of every bundled source."""
    return frozenset(hashlib.sha256(s.path.read_bytes()).hexdigest() for s in all_samples())
