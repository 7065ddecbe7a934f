"""How a benchmark hands over what it found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def tell(report: dict[str, Any], out: Path | None) -> None:
    """Print the report as JSON, and keep it in `out` where one is named."""
    text = json.dumps(report, indent=1) + "\n"
    sys.stdout.write(text)
    if out is not None:
        out.write_text(text)
