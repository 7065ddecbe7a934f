"""The name of a build's finished library: what of `extensions` the supervisor needs too.

Apart from it, since its `torch.utils.cpp_extension` warns on the terminal where torch has CUDA but the host no card.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

KERNEL_ENDINGS = (".cu", ".cuh", ".h")
"""Of the files beside `solution.py`: sources may include every one of them."""


def unit_hash(unit: dict[str, Any]) -> str:
    """The name of a unit's finished library."""
    return hashlib.sha256(json.dumps(unit, sort_keys=True).encode()).hexdigest()


def beside_hash(files: Mapping[str, bytes]) -> str | None:
    """One hash over the kernel files of a bundle, which a source may include; None where there are none."""
    rows = [
        [name, hashlib.sha256(content).hexdigest()]
        for name, content in sorted(files.items())
        if name.endswith(KERNEL_ENDINGS)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest() if rows else None
