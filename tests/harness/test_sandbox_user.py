"""The form without root: the whole path again as a plain user, in a process of that user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyseccomp
import pytest

from evaluator.harness import sandbox
from evaluator.harness.sandbox import names
from evaluator.harness.sandbox.layout import host_layout

from .sandboxes import needs_bubblewrap

pytestmark = [needs_bubblewrap, pytest.mark.serial]

NOBODY = 65534

SCRIPT = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from evaluator.harness.sandbox import *

def state(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"

report = host_grade()
said = {"grade": report.grade, "form": report.details["form"], "problems": self_check().problems}
code = '''
import os
print(os.getuid(), flush=True)
for _ in range(2): os.fork()
while True: pass
'''
box = Sandbox(SandboxSpec(argv=[python_inside(), "-c", code], env={"PATH": "/usr/bin"}))
box.start()
said["inside"] = int(box.stdout.readline())
deadline = time.monotonic() + 10
while len(box.pids()) < 6 and time.monotonic() < deadline:
    pass
pids = box.pids()
said["outside"] = os.stat(f"/proc/{pids[-1]}").st_uid
box.freeze()
said["states"] = sorted({state(pid) for pid in pids})
box.thaw()
box.freeze()
box.kill()
said["left"] = [pid for pid in pids if state(pid) not in "ZX"]
said["processes"] = len(pids)
secret = SandboxSpec(argv=["/usr/bin/env", "cat", sys.argv[2]], env={})
with Sandbox(secret) as box:
    said["secret"] = box.communicate(30)[0].decode()
said["leftovers"] = cleanup_leftovers()
print(json.dumps(said))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can read and write, with the package in it: the checkout may be root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="pkb-user-"))
    folder.chmod(0o777)
    package = folder / "evaluator/harness/sandbox"
    shutil.copytree(Path(sandbox.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(pyseccomp.__file__, folder)
    yield folder
    shutil.rmtree(folder)


def as_plain_user() -> list[str]:
    """The words before a command that is to run as a plain user."""
    if os.geteuid() != 0:
        return [sys.executable]
    drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    # The interpreter of a root's virtual environment may lie where nobody else can go. It may start all the
    # same, since setpriv looks it up before it gives its powers up, but then finds nothing of its own.
    code = "import os, sys; sys.exit(not os.access(os.path.realpath(sys.executable), os.X_OK))"
    can_run = subprocess.run([*drop, sys.executable, "-c", code], capture_output=True).returncode == 0
    return [*drop, sys.executable if can_run else "/usr/bin/python3"]


def test_plain_user_gets_a_working_sandbox(open_folder: Path) -> None:
    secret = open_folder / "secret"
    secret.write_text("readable for that user outside")
    done = subprocess.run(
        [*as_plain_user(), "-c", SCRIPT, str(open_folder), str(secret)],
        env={"PATH": "/usr/bin:/bin", "PKB_RUN_DIR": str(open_folder / "run"), "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said["form"] == "user"
    assert said["problems"] == []
    assert said["grade"] in ("partial", "full")
    assert said["inside"] == 1000
    assert said["outside"] == (NOBODY if os.geteuid() == 0 else os.geteuid())
    assert said["processes"] == 6
    assert set(said["states"]) <= ({"T", "t"} if said["grade"] == "partial" else {"S", "D", "R"})
    assert said["left"] == []
    assert said["secret"] == ""
    assert said["leftovers"] == []


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can leave something that a plain user must not touch"
)
def test_a_users_worker_leaves_the_groups_of_dead_root_leases_alone(open_folder: Path) -> None:
    bases = [place.base for place in host_layout().bases()]
    name = names.job_name(names.default_host_id(), "p4194399-1", "root-left-this")
    folders = [base / name for base in bases]
    for folder in folders:
        folder.mkdir()
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from evaluator.harness.sandbox import cleanup_leftovers; print(cleanup_leftovers())"
    )
    try:
        assert names.lease_is_dead(names.default_host_id(), "p4194399-1")
        done = subprocess.run(
            [*as_plain_user(), "-c", code, str(open_folder)],
            env={"PATH": "/usr/bin:/bin", "PKB_RUN_DIR": str(open_folder / "run"), "HOME": "/nonexistent"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.stdout.strip(), done.stderr) == ("[]", "")
        assert folders
        assert all(folder.is_dir() for folder in folders)
    finally:
        for folder in folders:
            folder.rmdir()
