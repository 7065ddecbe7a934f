"""Where the time of `make test` goes: each pass writes its files' seconds to `PKB_TEST_TIMES`, this prints them.

    python -m tests.times FILE [--rows 15]

One JSON line per pass: {"pass", "wall_s", "files": {path: seconds of set-up, test and tear-down}}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

KEY = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the clock of the pass."""
    config.stash[KEY] = time.monotonic()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Add this pass's line, where the environment names a file."""
    chosen = os.environ.get("PKB_TEST_TIMES")
    if not chosen or hasattr(config, "workerinput"):
        return
    files: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                files[report.nodeid.partition("::")[0]] += report.duration
    line = {
        "pass": os.environ.get("PKB_TEST_PASS", ""),
        "wall_s": time.monotonic() - config.stash[KEY],
        "files": dict(files),
    }
    with Path(chosen).open("a") as out:
        out.write(json.dumps(line) + "\n")


def table(lines: list[dict[str, Any]], rows: int) -> str:
    """The passes, then the files that took longest over all of them."""
    told = [f"{line['wall_s']:7.0f} s  {line['pass']}" for line in lines]
    files = Counter({(path, line["pass"]): took for line in lines for path, took in line["files"].items()})
    told += ["", *(f"{took:7.1f} s  {path} ({name})" for (path, name), took in files.most_common(rows))]
    return "\n".join(told)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.times", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=15)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.file.read_text().splitlines()]
    sys.stdout.write(table(lines, options.rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
