"""Run the adversary suite and print a table: python -m tests.adversary [--only TEXT] [--repeat N]."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.adversary.catalog import all_entries
from tests.adversary.runner import Arena


def main() -> int:
    """0 when every entry ended as its manifest line demands."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--only", action="append", help="only ids that start with this; repeatable")
    parser.add_argument("--fast", action="store_true", help="the subset that `make test` runs")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write verdicts and results there")
    args = parser.parse_args()
    chosen = [entry for entry in all_entries() if entry.fast or not args.fast]
    if args.only:
        chosen = [entry for entry in chosen if entry.id.startswith(tuple(args.only))]
    broken, rows = 0, []
    with Arena() as arena:
        for entry in chosen * args.repeat:
            outcome = arena.run(entry)
            broken += bool(outcome.broken)
            print(outcome.row(), flush=True)
            rows.append({"id": entry.id, "broken": outcome.broken, "result": outcome.result})
    print(f"{len(rows)} runs, {broken} broken")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
