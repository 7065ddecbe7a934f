"""What the sandbox tests share: they start real sandboxes, so there is nothing here but short cuts."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness.sandbox import Sandbox, SandboxSpec, python_inside
from evaluator.harness.sandbox.layout import Layout, host_layout, v1_layout
from evaluator.harness.sandbox.names import run_root

MIB = 1 << 20
ENV = {"PATH": "/usr/bin:/bin"}

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the root form needs root")


def python_spec(code: str, *arguments: str, **options: Any) -> SandboxSpec:
    """A spec that runs ``code`` in the interpreter inside."""
    return SandboxSpec(argv=[python_inside(), "-I", "-c", code, *arguments], env=ENV, **options)


def run_inside(code: str, *arguments: str, **options: Any) -> tuple[int | None, str, str]:
    """(exit code, standard output, standard error) of ``code``."""
    with Sandbox(python_spec(code, *arguments, **options)) as box:
        out, err = box.communicate(60)
    return box.returncode, out.decode(), err.decode()


def wait_for(condition: Callable[[], object], limit_s: float = 10.0) -> None:
    """Return once ``condition`` holds; fail the test when it does not in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"did not happen within {limit_s:g} s")
        os.sched_yield()


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def layouts() -> dict[str, Layout]:
    """Every way of freezing that this host has: its own, v1 if there is one, and signals alone."""
    found = {"host": host_layout(), "signals": Layout({})}
    if "freeze" in v1_layout().places and v1_layout() != host_layout():
        found["v1"] = v1_layout()
    return found


def traces(name: str) -> list[str]:
    """Groups, folders, files and shared memory on this host whose path contains ``name`` (a job's or a lease's)."""
    groups = [place.base / entry for place in all_places() for entry in os.listdir(place.base)]
    leases = run_root() / "leases"
    runs = [*leases.glob("*"), *leases.glob("*/*")]
    shared = [*Path("/dev/shm").iterdir(), *Path(tempfile.gettempdir()).glob("pkb.*")]
    return [str(path) for path in groups + runs + shared if name in str(path)]


def processes_with(token: str) -> list[int]:
    """Those whose command line contains ``token``; what only waits to be reaped has none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if token.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


def all_places() -> list[Any]:
    """The places of every layout."""
    return [place for layout in layouts().values() for place in layout.bases()]
