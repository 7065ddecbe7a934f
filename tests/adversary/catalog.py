"""The manifest of the adversary suite, read and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
VERDICTS = {
    "correct", "incorrect", "contract_error", "build_error", "runtime_error", "timeout", "out_of_memory",
    "rejected", "upload_refused",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One file of the suite; fields as explained at the top of `manifest.toml`."""

    id: str
    file: str
    family: str
    problem: str
    what: str
    expect: list[str]
    must_not: list[str]
    defence: str
    kind: str = "solution"
    protocol: str = "quick"
    fast: bool = False
    name: str = "own"
    """The name under which the file is handed in at the portal."""

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    @property
    def honest(self) -> bool:
        return self.id[0] in "kwc"

    @property
    def source(self) -> str:
        return self.path.read_text()


def all_entries() -> list[Entry]:
    """In the order of the manifest. Raises TypeError or ValueError for a row that is not well formed."""
    rows = tomllib.loads((FOLDER / "manifest.toml").read_text())["entries"]
    entries = [Entry(**row) for row in rows]
    for entry in entries:
        unknown = set(entry.expect) - VERDICTS
        if unknown or not entry.path.is_file():
            raise ValueError(f"{entry.id}: unknown verdicts {sorted(unknown)} or no file {entry.file}")
    return entries
