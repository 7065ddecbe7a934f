"""The bundled sample submissions: the only sources that run on a host without a sandbox."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from problems import registry

DEMO_TARGET = "cpu4"
FOLDER = Path(registry.__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    """One row of `samples.toml`."""

    file: str
    problem: str
    verdict: str
    entrant: str
    about: str
    target: str = DEMO_TARGET

    @property
    def path(self) -> Path:
        return FOLDER / self.file


@cache
def all_samples(target: str | None = DEMO_TARGET) -> list[Sample]:
    """In the order of the manifest: those for one target, or all (`None`). The demo submits those for cpu4."""
    path = FOLDER / "samples.toml"
    if not path.exists():
        return []
    found = [Sample(**row) for row in tomllib.loads(path.read_text())["samples"]]
    return [sample for sample in found if target in (None, sample.target)]


@cache
def bundled_hashes() -> frozenset[str]:
    """SHA-256 of every bundled source."""
    return frozenset(hashlib.sha256(s.path.read_bytes()).hexdigest() for s in all_samples(None))
