"""What was read off a build: per kernel its registers and spills, hashes, and the text that tells its mechanism.

It comes from the build sandbox (`harness/rank/native_facts.py`) as claims: read with suspicion, used to explain only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MAX_KERNELS = 64
MAX_CLAIM = 512 << 10

MAX_NAME = 400
"""Letters of a kernel's name that are kept; those of templates can be longer."""

_COMPILING = re.compile(r"Compiling entry function '([\w$]+)' for '(sm_\w{1,8})'")
_PROPERTIES = re.compile(r"Function properties for ([\w$]+)")
_STACK = re.compile(r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_USED = re.compile(r"Used (\d{1,5}) registers(?:.*?(\d{1,9}) bytes smem)?")


@dataclass(frozen=True)
class NativeFacts:
    """Texts of one built library; all empty for one without kernels or with a compiler that told nothing."""

    resources: str = ""
    """The assembler's report (`ptxas -v`)."""
    ptx: str = ""
    sass: str = ""
    imports: str = ""
    ptx_sha256: str = ""
    cubin_sha256: str = ""

    @classmethod
    def read(cls, claim: Any) -> NativeFacts:
        """The facts that a claim holds; what is not text, or too long, is left out."""
        if not isinstance(claim, dict):
            return cls()
        texts = {name: claim.get(name) for name in cls.__dataclass_fields__}
        kept = {
            name: text for name, text in texts.items() if isinstance(text, str) and len(text) <= MAX_CLAIM
        }
        return cls(**{name: _hash(text) if name.endswith("sha256") else text for name, text in kept.items()})

    def kernels(self) -> list[dict[str, Any]]:
        """Registers, stack, spills and shared memory (bytes) per kernel and architecture, worst spills first."""
        rows: list[dict[str, Any]] = []
        entry = told_of = ""
        for line in self.resources.splitlines():
            if (head := _COMPILING.search(line)) is not None:
                entry = told_of = head[1]
                rows.append({"kernel": entry[:MAX_NAME], "arch": head[2]})
            elif (function := _PROPERTIES.search(line)) is not None:
                told_of = function[1]  # below a kernel the functions that it calls are told of, too
            elif rows and told_of == entry and (stack := _STACK.search(line)) is not None:
                names = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
                rows[-1].update({name: int(value) for name, value in zip(names, stack.groups(), strict=True)})
            elif rows and (used := _USED.search(line)) is not None:
                rows[-1].update(registers=int(used[1]), shared_bytes=int(used[2] or 0))
        rows.sort(key=lambda row: (-row.get("spill_load_bytes", 0), row["kernel"]))
        return rows[:MAX_KERNELS]

    def hashes(self) -> dict[str, str]:
        """Hashes of PTX and machine code, where there are any."""
        both = {"ptx_sha256": self.ptx_sha256, "cubin_sha256": self.cubin_sha256}
        return {name: value for name, value in both.items() if value}


def _hash(text: str) -> str:
    return text if re.fullmatch(r"[0-9a-f]{64}", text) else ""
