"""The mutation gate over the whole catalogue: the reference passes 20 draws, every mutant fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.harness.gate import run_gate
from evaluator.harness.trustedranks import TrustedRanks
from problems.registry import Problem, all_problems, load_problem

pytestmark = pytest.mark.processes

RANKS = 4
SEEDS = 20
SLUGS = [problem.slug for problem in all_problems() if RANKS in problem.world_sizes]


@pytest.fixture(scope="module")
def ranks() -> Iterator[TrustedRanks]:
    with TrustedRanks(RANKS) as pool:
        yield pool


@pytest.mark.timeout(600)
@pytest.mark.parametrize("slug", SLUGS)
def test_the_problem_is_worth_judging(ranks: TrustedRanks, slug: str) -> None:
    report = run_gate(load_problem(slug), ranks, seeds=SEEDS)

    assert report.problems == []
    assert report.seeds == SEEDS
    assert report.killed, "no mutant applied at all"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_reference_runs_on_the_published_values(ranks: TrustedRanks, slug: str) -> None:
    """Trial 3: where the published generator does something special, it does it there."""
    problem = load_problem(slug)
    upstream = problem.module("inputs").upstream(problem.namespace("tiny"), RANKS, 3)

    assert len(ranks.call(problem, upstream)) == RANKS


def test_a_wide_tolerance_does_not_pass(ranks: TrustedRanks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate itself can fail: with everything accepted, its mutants live."""
    monkeypatch.setattr("evaluator.harness.gate.check_rank", lambda *args: None)

    report = run_gate(load_problem("allreduce"), ranks, seeds=2)

    assert "mutant 'zeros' passes" in report.problems


def test_a_wrong_declaration_does_not_pass(ranks: TrustedRanks) -> None:
    """What people read about an output is what the reference returns."""
    problem = load_problem("allreduce")
    said = {**problem.data, "outputs": [{**problem.data["outputs"][0], "dtype": "float32"}]}

    report = run_gate(Problem(problem.folder, said), ranks, seeds=2)

    assert "output out is torch.bfloat16, declared float32" in report.problems


def test_the_ranks_leave_no_folder_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """To share tensors they make one each, which only an orderly end removes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    problem = load_problem("allreduce")
    with TrustedRanks(RANKS) as pool:
        pool.call(problem, problem.module("inputs").upstream(problem.namespace("tiny"), RANKS, 3))
        assert list(tmp_path.glob("pymp-*"))
    assert list(tmp_path.glob("pymp-*")) == []
