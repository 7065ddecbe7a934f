"""The flags that the static scan can raise: code, weight and the sentence that people read.

A flag is a reason to look, never a verdict: much of what is flagged is legal and usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Weight = Literal["note", "review"]

SENTENCES: dict[str, tuple[Weight, str]] = {
    "library_only": (
        "note",
        "All communication goes through torch.distributed; there is no kernel of the file's own.",
    ),
    "reference_copy": ("note", "The file is the problem's reference, comments and layout aside."),
    "changes_settings": ("note", "Changes a global setting of a library, such as its precision."),
    "starts_threads": ("note", "Starts threads. That is legal as long as all work ends within the call."),
    "reads_environment": ("note", "Reads environment variables beyond those that a launcher sets."),
    "catches_everything": (
        "review",
        "Catches every exception and goes on. A fallback can hide that the faster path never ran.",
    ),
    "patches_modules": ("review", "Replaces attributes of imported modules or classes."),
    "changes_imports": ("review", "Changes where modules are found or what an import returns."),
    "opens_sockets": ("review", "Opens network connections of its own."),
    "spawns_processes": ("review", "Starts other processes."),
    "reads_process_files": ("review", "Names files that describe other processes or the machine."),
    "walks_frames": (
        "review",
        "Looks at things the file does not own: frames, all objects, all modules, or every call by tracing.",
    ),
    "uses_ctypes": ("review", "Reaches into memory or libraries from below Python (ctypes, cffi, dlopen)."),
    "runs_generated_code": ("review", "Runs text as code, which this scan cannot see through."),
    "runs_at_load": ("review", "Compiled code runs as soon as it is loaded, before any call."),
    "unreadable": ("review", "The scan could not read this file."),
}


@dataclass(frozen=True, slots=True)
class Flag:
    """One reason to look, with the first place where it was seen and how many places there are."""

    code: str
    line: int
    sentence: str
    file: str = "solution.py"
    count: int = 1
    weight: Weight = "review"

    def as_json(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        return {
            "code": self.code,
            "line": self.line,
            "sentence": self.sentence,
            "file": self.file,
            "count": self.count,
            "weight": self.weight,
        }


class Findings:
    """Collects places by code; each code becomes one flag per file."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], set[int]] = {}

    def add(self, code: str, line: int, file: str = "solution.py") -> None:
        """Note a place. An unknown code is a KeyError: every flag needs its sentence."""
        _ = SENTENCES[code]
        self._places.setdefault((code, file), set()).add(max(1, line))

    def flags(self) -> list[Flag]:
        """All flags: what wants a review first, then by file and line."""
        found = [
            Flag(code, min(lines), SENTENCES[code][1], file, len(lines), SENTENCES[code][0])
            for (code, file), lines in self._places.items()
        ]
        return sorted(found, key=lambda f: (f.weight != "review", f.file, f.line, f.code))
