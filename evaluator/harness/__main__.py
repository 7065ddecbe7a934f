"""`python -m evaluator.harness COMMAND …`: the judge without the portal."""

from __future__ import annotations

import sys

from evaluator.harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
