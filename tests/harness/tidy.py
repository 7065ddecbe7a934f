"""Scores hostile files in namespaces of its own and tells what the machine looked like before and after.

Started by `test_leaves_nothing.py` as `unshare --mount --pid --ipc --fork --mount-proc python -m
tests.harness.tidy FILE…`, so that everything that can be seen here is ours and equality can be demanded.
Prints JSON: {"before", "after", "verdicts"}.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from evaluator.harness.sandbox import default_host_id
from evaluator.harness.sandbox.cgroup import job_groups
from evaluator.harness.sandbox.names import parse, run_root
from tests.adversary.catalog import FOLDER
from tests.harness.brisk import BriskJudge

OWN_PLACES = ("/tmp", "/dev/shm")
CHECKOUT, ASIDE = str(Path(__file__).resolve().parents[2]), "/mnt"
PATIENCE_S = 5.0
HONEST = FOLDER / "honest" / "k01_allreduce_plain.py"


def files(folder: str | Path) -> list[str]:
    """Every file and folder below, a checkout of ours left out."""
    found = []
    for top, below, names in os.walk(folder):
        below[:] = [name for name in below if f"{top}/{name}" != CHECKOUT]
        found += [f"{top}/{name}" for name in below + names]
    return sorted(found)


def processes() -> list[str]:
    """Command lines of all that live in this pid namespace; what only waits to be reaped has ended."""
    found = []
    for entry in (name for name in os.listdir("/proc") if name.isdigit()):
        try:
            status = Path("/proc", entry, "stat").read_text()
            words = Path("/proc", entry, "cmdline").read_text().replace("\0", " ")
            if status.rpartition(")")[2].split()[0] not in "ZX":
                found.append(words or status.split()[1])
        except OSError:
            continue
    return sorted(found)


def threads(usual: int) -> int:
    """Threads of this process, as soon as they are no more than usual or patience ends.

    A thread that was joined is listed until the kernel, too, has ended it.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (count := len(os.listdir("/proc/self/task"))) > usual and time.monotonic() < deadline:
        os.sched_yield()
    return count


def machine(usual_threads: int) -> dict[str, Any]:
    """What a job could leave behind."""
    gc.collect()
    mounts = Path("/proc/self/mountinfo").read_text()
    groups = [name for name in job_groups(mounts) if (parse(name) or ("",))[0] == default_host_id()]
    opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return {
        "processes": processes(),
        "shared memory": files("/dev/shm"),
        "temporary files": files("/tmp"),
        "run folder": files(run_root()),
        "sysv ipc": [Path("/proc/sysvipc", kind).read_text() for kind in ("shm", "msg", "sem")],
        "mounts": mounts,
        "cgroups": groups,
        "descriptors": sorted(os.readlink(path).split(":")[0] for path in opened if os.path.islink(path)),
        "threads": threads(usual_threads),
    }


def scored(paths: list[Path]) -> list[str]:
    with BriskJudge("cpu4") as judge:
        return [
            judge.score(problem="allreduce", solution=path, protocol="check")["verdict"] for path in paths
        ]


def cover() -> None:
    """Empty folders in the places that everybody may write to; a checkout that lies in one stays where it is."""
    inside = CHECKOUT.startswith(tuple(f"{place}/" for place in OWN_PLACES))
    if inside:
        subprocess.run(["mount", "--bind", CHECKOUT, ASIDE], check=True)
    for place in OWN_PLACES:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", place], check=True)
    if inside:
        os.makedirs(CHECKOUT)
        subprocess.run(["mount", "--move", ASIDE, CHECKOUT], check=True)
        os.chdir(CHECKOUT)


def main() -> int:
    cover()
    os.environ.update(PKB_RUN_DIR="/tmp/run", HOME="/tmp/home")
    scored([HONEST])  # what is loaded and opened once is there from now on
    before = machine(threads(1))
    verdicts = scored([Path(name) for name in sys.argv[1:]])
    print(json.dumps({"before": before, "after": machine(before["threads"]), "verdicts": verdicts}))  # noqa: T201 (its answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
