"""`manage.py demo` as a process: it reuses what is there, says what differs, and leaves no child behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.harness.samples import all_samples
from tests.evaluator.processes import alive, descendants
from tests.evaluator.world import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(400)]


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command with a judge that finds everything correct, in a folder of its own."""
    (folder / "home").mkdir(exist_ok=True)
    env = {
        **{name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"},
        "HOME": str(folder / "home"),
        "PKB_VAR": str(folder / "var"),
        "DJANGO_SETTINGS_MODULE": "portal.settings.dev",
        "PKB_JUDGE": "tests.evaluator.fake_judge.FakeJudge",
        "CELERY_BROKER_URL": "filesystem://",
    }
    command = [sys.executable, "manage.py", "demo", "--port", "8090", *options]
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What the demo prints up to a line with these words."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"{words!r} was never printed:\n{seen}")


def test_it_reports_what_differs_and_a_second_run_reuses_the_first(tmp_path: Path) -> None:
    count = len(all_samples())
    wrong = sum(sample.verdict != "correct" for sample in all_samples())
    with demo(tmp_path, "--once") as process:
        text, _ = process.communicate(timeout=240)
    assert process.returncode == 1, text
    assert text.count("NOT ") == wrong
    assert text.count("as expected ") == count - wrong
    assert f"{count - wrong} of {count} ended as expected." in text
    assert "Not every sample got the verdict" in text
    assert "correct correct" not in text
    keys = tmp_path / "var" / "demo.json"
    told = json.loads(keys.read_text())
    before = text.partition("Submitting the samples")[0]
    assert f"Log in as   demo / {told['password']}" in before
    assert told["token"] in before
    assert keys.stat().st_mode & 0o777 == 0o600
    with demo(tmp_path, "--once") as process:
        text, _ = process.communicate(timeout=240)
    assert f"{count} of {count} were judged by an earlier run of the demo." in text
    assert list((tmp_path / "home").iterdir()) == [], "it writes into its own folder alone"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_child_outlives_it(tmp_path: Path, how: signal.Signals) -> None:
    with demo(tmp_path) as process:
        read_until(process, "Submitting the samples")
        family = descendants(process.pid)
        assert len(family) >= 2, "a web server and a worker were expected"
        process.send_signal(how)
        if how is signal.SIGINT:
            read_until(process, "Stopping: ")
            read_until(process, "Stopped.")
            assert alive(family) == set()
        process.wait(60)
        pause = threading.Event()
        for _ in range(400):
            if not alive(family):
                break
            pause.wait(0.1)
        assert alive(family) == set()
