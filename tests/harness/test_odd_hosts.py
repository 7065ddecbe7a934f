"""Jobs that can't be stopped, times that can't be true, sizes that don't fit: each ends in the right words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness import judge as judge_module
from evaluator.harness.errors import JudgeFault, SizeTooLarge
from evaluator.harness.judge import Judge
from evaluator.harness.protocol import Session
from evaluator.harness.reports import JobFailed, RankReport
from evaluator.harness.sandbox import box
from evaluator.harness.sandbox.layout import Layout, host_layout
from problems.registry import all_problems, all_targets, load_problem, load_target
from tests.adversary.catalog import FOLDER

RESTLESS = FOLDER / "attacks" / "v35_restless_children.py"
PLAIN = FOLDER / "honest" / "k01_allreduce_plain.py"


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_job_that_cannot_be_stopped_is_its_own_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where signals are all there is, a job can keep itself going; the next one is judged as usual."""
    places = {key: place for key, place in host_layout().places.items() if key != "freeze"}
    monkeypatch.setattr(box, "host_layout", lambda: Layout(places))
    with Judge("cpu4") as judge:
        found = judge.score(problem="allreduce", solution=RESTLESS, protocol="check")
        after = judge.score(problem="allreduce", solution=PLAIN, protocol="check")

    assert (found["verdict"], found["code"]) == ("runtime_error", "runtime_error.unstoppable")
    assert "could not be stopped" in found["message"]
    assert after["verdict"] == "correct"


class Ended:
    """A job that only notes that it was ended; `fails` is what its handshake raises."""

    def __init__(self, fails: JobFailed | None = None) -> None:
        self.target, self.fails, self.closed = load_target("cpu4"), fails, False

    def handshake(self) -> float:
        if self.fails is not None:
            raise self.fails
        return 0.0

    def close(self) -> None:
        self.closed = True

    def call(self, *_: Any) -> Any:
        raise self.fails or AssertionError


def failure(kind: str, *, memory: bool = False) -> JobFailed:
    made = JobFailed(kind, "call", [RankReport(rank) for rank in range(4)])
    made.out_of_memory = memory
    return made


class Cases:
    seed, size = 1, "tiny"


def session(reference: Any) -> Session:
    cases: Any = Cases()
    return Session(load_problem("allreduce"), cases, reference, None)


def test_a_host_that_can_stop_no_job_is_at_fault_itself() -> None:
    submission: Any = Ended()

    with pytest.raises(JudgeFault, match="no job can be stopped"):
        session(Ended(failure("unstoppable"))).blamed(failure("unstoppable"), submission)

    assert submission.closed


def test_a_reference_that_needs_too_much_memory_means_the_size() -> None:
    call: Any = type("Call", (), {"packed": []})()

    with pytest.raises(SizeTooLarge, match="size tiny of allreduce does not fit cpu4"):
        session(Ended(failure("exit", memory=True))).run_reference(call)


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_time_below_the_floor_is_measured_again_and_then_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target whose links would need an hour for what every call must exchange."""
    real = load_target("cpu4")
    slow = replace(real, hardware=replace(real.hardware, link_gbs=1e-9), data={**real.data, "floor": True})
    monkeypatch.setattr(judge_module, "load_target", lambda name: slow)
    stages: list[str] = []

    with Judge("cpu4") as judge:
        found = judge.score(
            problem="allreduce",
            solution=PLAIN,
            protocol="quick",
            on_stage=lambda stage, _: stages.append(stage),
        )

    assert (found["verdict"], found["code"]) == ("rejected", "rejected.impossible")
    assert stages.count("timing") == 2
    assert "below_floor" in found["flags"]


def test_a_size_that_does_not_fit_is_refused_before_anything_starts(tmp_path: Path) -> None:
    judge = Judge.__new__(Judge)  # no template: none may be needed
    judge.target = load_target("cpu4")

    with pytest.raises(
        SizeTooLarge, match=r"size large of allreduce does not fit cpu4: .*Sizes that fit: tiny, default\."
    ) as told:
        judge.score(problem="allreduce", solution=tmp_path / "none.py", size="large", protocol="check")

    assert told.value.code == "size.too_large_for_target"


def test_every_ranked_cell_fits_its_target() -> None:
    for target in all_targets():
        for problem in all_problems():
            for size in target.cells:
                assert target.too_large(problem, size) is None, (target.slug, problem.slug, size)
