"""How long freezing and thawing takes here, by kind of freezer and by what the job does.

    python -m tests.bench.bench_freezer [--rounds 300] [--json OUT]

A round is thaw, 1 ms, freeze, 1 ms. Microseconds; the first column is the kind of freezer. ``idle`` is four
ranks that wait, as they do between calls; ``busy`` is four that compute. On a machine with
fewer cores than ranks the busy ones have to be scheduled once before they can stop, so the figure includes the
wait for a core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from evaluator.harness.sandbox import Sandbox, SandboxSpec, python_inside
from evaluator.harness.sandbox.layout import Layout, host_layout, v1_layout

RANKS = 4
CODE = """
import os
for _ in range({others}):
    if os.fork() == 0:
        break
print(1, flush=True)
{work}
"""
WORK = {"idle": "import signal; signal.pause()", "busy": "while True: pass"}


def kinds() -> dict[str, Layout]:
    """The freezers of this host, best first."""
    found = {}
    for layout in (host_layout(), v1_layout()):
        if "freeze" in layout.places:
            found.setdefault(f"v{layout.places['freeze'].version}", layout)
    return {**found, "signals": Layout({})}


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median, 90th percentile and maximum, in microseconds."""
    micro = sorted(second * 1e6 for second in seconds)
    return {
        "median": round(statistics.median(micro), 1),
        "p90": round(micro[int(len(micro) * 0.9)], 1),
        "max": round(micro[-1], 1),
    }


def measure(layout: Layout, work: str, rounds: int) -> dict[str, dict[str, float]]:
    """Freeze and thaw times of one job."""
    code = CODE.format(others=RANKS - 1, work=WORK[work])
    spec = SandboxSpec(argv=[python_inside(), "-I", "-c", code], env={"PATH": "/usr/bin"}, name="bench")
    freeze, thaw = [], []
    with Sandbox(spec, layout) as box:
        for _ in range(RANKS):
            box.stdout.readline()
        box.freeze()
        for _ in range(rounds):
            thaw.append(box.thaw())
            time.sleep(0.001)
            freeze.append(box.freeze())
            time.sleep(0.001)
    return {"freeze": quantiles(freeze), "thaw": quantiles(thaw)}


def main() -> int:
    """Measure, print a table, and write the JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, object] = {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "rounds": options.rounds,
    }
    sys.stdout.write(f"{'freezer':9}{'ranks':7}{'step':8}{'median':>9}{'p90':>9}{'max':>9}  µs\n")
    for kind, layout in kinds().items():
        for work in WORK:
            found = measure(layout, work, options.rounds)
            results[f"{kind} {work}"] = found
            for step, figures in found.items():
                row = "".join(f"{figures[key]:9.0f}" for key in ("median", "p90", "max"))
                sys.stdout.write(f"{kind:9}{work:7}{step:8}{row}\n")
    sys.stdout.write(f"{results['cores']} cores, load {results['load']:.1f}, {options.rounds} rounds\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
