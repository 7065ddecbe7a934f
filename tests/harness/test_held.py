"""A held job: its ranks are in their groups, and no line of the file has run until it is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.harness.cases import Cases, slot_sizes
from evaluator.harness.job import Job
from evaluator.harness.judge import Judge
from evaluator.harness.reports import JobFailed
from problems.registry import load_problem

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


def held_job(judge: Judge, text: str) -> tuple[Job, Cases]:
    problem = load_problem("allreduce")
    cases = Cases(problem, "tiny", judge.target.ranks, 7, judge.target.device)
    sizes = slot_sizes(cases, [cases.answers(0)])
    template = judge.take()
    judge.refill()
    return Job(template, problem, "submission", {"solution.py": text.encode()}, *sizes, held=True), cases


def test_the_file_is_imported_only_once_the_job_is_started(judge: Judge) -> None:
    reference = (load_problem("allreduce").folder / "reference.py").read_text()
    job, cases = held_job(judge, f"print('imported')\n{reference}")
    try:
        job.join(60.0)
        assert {report.state for report in job.reports} == {"joined"}
        before = {name: stream.text for name, stream in job.log.result().items() if stream.text}
        job.start(60.0)
        turn = job.call(cases.call(0).packed, 30.0, "call")
    finally:
        job.close()
    after = [stream.text for name, stream in job.log.result().items() if name.endswith("stdout")]
    assert before == {}
    assert sum("imported" in text for text in after) == judge.target.ranks
    assert len(turn.outputs) == judge.target.ranks


def test_what_the_import_raises_is_told_as_ever(judge: Judge) -> None:
    job, _ = held_job(judge, "raise ValueError('not today')\n")
    try:
        job.join(60.0)
        with pytest.raises(JobFailed) as caught:
            job.start(60.0)
    finally:
        job.close()
    assert caught.value.phase == "import"
    assert any("not today" in str(report.error) for report in caught.value.ranks)


def test_templates_begin_before_a_command_has_imported_torch() -> None:
    """Both take the same seconds: one after the other they were a sixth of a score on cards."""
    code = "import sys; from evaluator.harness import cli, warm; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
