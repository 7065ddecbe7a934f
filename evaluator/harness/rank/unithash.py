"""The name of a build's finished library: the one thing of `extensions` that the supervisor needs too.

Apart from it, since its `torch.utils.cpp_extension` warns on the terminal where torch has CUDA but the host no card.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def unit_hash(unit: dict[str, Any]) -> str:
    """The name of a unit's finished library."""
    return hashlib.sha256(json.dumps(unit, sort_keys=True).encode()).hexdigest()
