"""The noise floor: what it is pooled from, and that the judge is told."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from evaluator import noise, selectors, services
from evaluator.models import Attempt, Baseline, Host
from evaluator.runner import run_lease
from leaderboard.models import Score
from tests.evaluator import build
from tests.evaluator.fake_judge import FakeJudge
from tests.evaluator.test_runner import Watch


def test_ten_per_cent_until_there_are_twenty() -> None:
    assert noise.floor_of([0.001] * 19) == 0.10
    assert noise.floor_of([0.02] * 20) == pytest.approx(math.expm1(0.02))


def test_the_floor_is_the_95_per_cent_quantile_of_the_distance_in_both_directions() -> None:
    ratios = [math.log(1 + n / 1000) * (-1) ** n for n in range(1, 101)]
    assert noise.floor_of(ratios) == pytest.approx(0.095)


@pytest.mark.parametrize(("ratio", "floor"), [(0.0, noise.LEAST), (3.0, noise.MOST)])
def test_the_floor_has_limits(ratio: float, floor: float) -> None:
    assert noise.floor_of([ratio] * 30) == floor


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "x",
        {},
        {"before_ms": 0, "after_ms": 1},
        {"before_ms": True, "after_ms": 1},
        {"before_ms": float("nan"), "after_ms": 1},
        {"before_ms": 1, "after_ms": None},
    ],
)
def test_odd_timings_are_no_comparison(odd: Any) -> None:
    assert noise.block_ratio(odd) is None


def judged(timing: dict[str, Any], text: str = "x = 1\n", reference: str = "") -> Attempt:
    row = build.submission(text, problem=build.problem())
    if reference:
        row.problem.spec = {"reference": reference}
        row.problem.save()
    host = services.register_host(name="h", target="cpu4")
    lease = services.lease(host=host)
    assert lease is not None
    result = build.result(speedup=0.9)
    result["timing"] |= timing
    services.complete(token=lease.token, result=result)
    return Attempt.objects.select_related("submission__problem", "host").get(pk=lease.attempt_id)


@pytest.mark.django_db
def test_blocks_before_and_after_are_kept_once() -> None:
    attempt = judged({"before_ms": 2.0, "after_ms": 2.2})
    assert services.record_baselines(attempt=attempt) == 1
    assert services.record_baselines(attempt=attempt) == 0
    row = Baseline.objects.get()
    assert (row.kind, row.size, row.log_ratio) == ("blocks", "tiny", pytest.approx(math.log(1.1)))


@pytest.mark.django_db
def test_the_reference_sent_as_a_submission_is_a_comparison_too() -> None:
    text = "def solution(tensor):\n    return tensor\n"
    attempt = judged({}, text, reference=text)
    assert hashlib.sha256(text.encode()).hexdigest() == attempt.submission.source_sha256
    assert services.record_baselines(attempt=attempt) == 1
    assert Baseline.objects.get().kind == "aa"
    assert Baseline.objects.get().log_ratio == pytest.approx(math.log(0.9))


@pytest.mark.django_db
def test_each_problem_and_host_has_its_own_pool_and_the_judge_is_told() -> None:
    attempt = judged({"before_ms": 1.0, "after_ms": 1.0})
    host, problem = attempt.host, attempt.submission.problem
    for number in range(20):
        other = Attempt.objects.create(
            submission=attempt.submission, host=host, number=number + 2, leased_at=attempt.leased_at,
            heartbeat_at=attempt.leased_at, lease_expires_at=attempt.leased_at, finished_at=attempt.leased_at,
            exit_reason="scored", result={},
        )  # fmt: skip
        Baseline.objects.create(
            attempt=other,
            host=host,
            problem=problem,
            size="tiny",
            kind="blocks",
            log_ratio=0.03,
            at=attempt.leased_at,
        )
    floor = math.expm1(0.03)
    assert selectors.noise_floor(problem_id=problem.pk, host_id=host.pk) == pytest.approx(floor)
    assert selectors.noise_floor(problem_id=build.problem("other").pk, host_id=host.pk) == 0.10
    elsewhere = services.register_host(name="elsewhere", target="cpu4")
    assert selectors.noise_floor(problem_id=problem.pk, host_id=elsewhere.pk) == 0.10

    sent = build.submission("# fake: correct 0.95\n")
    lease = services.lease(host=Host.objects.get(pk=host.pk))
    assert lease is not None
    assert run_lease(judge=FakeJudge("cpu4"), lease=lease, watch=Watch())
    services.announce(attempt_id=lease.attempt_id)
    assert Score.objects.get(submission=sent).noise_floor == pytest.approx(floor)
