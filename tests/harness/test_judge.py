"""The judge with real ranks: every sample's verdict, protocols, replay, stops, grades, the result's form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluator.harness import cli
from evaluator.harness import judge as judge_module
from evaluator.harness.ahead import builds_something
from evaluator.harness.errors import NoSandbox, Stopped
from evaluator.harness.judge import Judge
from evaluator.harness.samples import Sample, all_samples, bundled_hashes
from evaluator.harness.sandbox import HostReport, host_grade
from problems import starter
from problems.registry import UnknownProblem, load_problem

pytestmark = [pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(600)]
HONEST = Path(__file__).resolve().parents[1] / "adversary" / "honest"
SAMPLES = {sample.file: sample for sample in all_samples()}
BUILDING = [name for name in SAMPLES if builds_something({"solution.py": SAMPLES[name].path.read_bytes()})]
KEYS = {
    "schema", "harness_version", "problem", "target", "size", "input_set", "protocol", "verdict", "code", "message",
    "rank", "trials", "ranks", "stacks", "timing", "roofline", "memory", "mechanisms", "findings", "build",
    "upstream", "isolation_grade", "environment", "flags", "seeds", "source_sha256", "durations", "log",
}  # fmt: skip
TIMING = {
    "solution_ms", "reference_ms", "speedup", "speedup_low", "speedup_high", "calls", "pairs", "samples",
    "handshake_ms",
}  # fmt: skip


def sample(name: str) -> Sample:
    return SAMPLES[name]


def score(judge: Judge, name: str, protocol: str = "check", **options: Any) -> dict[str, Any]:
    chosen = sample(name)
    return judge.score(problem=chosen.problem, solution=chosen.path, protocol=protocol, **options)


@pytest.fixture(scope="module")
def checked(judge: Judge) -> Callable[[str], dict[str, Any]]:
    """A sample's result under protocol check; each is scored once for all tests that only read it."""
    for name in BUILDING:
        judge.prepare(problem=sample(name).problem, solution=sample(name).path)

    @cache
    def told(name: str) -> dict[str, Any]:
        if name in BUILDING:  # a compiler is at work for half a minute: meanwhile all others are judged
            for other in SAMPLES.keys() - BUILDING:
                told(other)
        return score(judge, name)

    return told


@pytest.fixture(scope="module")
def quick(judge: Judge) -> tuple[dict[str, Any], list[str]]:
    """A result under protocol quick, and the stages that were told on the way."""
    stages: list[str] = []
    told = score(
        judge, "allreduce_gather_and_sum.py", "quick", on_stage=lambda stage, detail: stages.append(stage)
    )
    return told, stages


@pytest.mark.parametrize("name", SAMPLES)
def test_each_sample_ends_as_its_manifest_says(checked: Callable[[str], dict[str, Any]], name: str) -> None:
    found = checked(name)

    assert found["verdict"] == sample(name).verdict, found["message"]
    assert found.keys() >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_check_measures_nothing(checked: Callable[[str], dict[str, Any]]) -> None:
    found = checked("allreduce_gather_and_sum.py")

    assert found["timing"] is None
    assert found["message"] == "All trials agree with the expected outputs on every rank."
    assert [trial["ok"] for trial in found["trials"]] == [True] * 5
    assert [row["ok"] for row in found["ranks"]] == [True] * 4


def test_quick_measures_pairs_of_two_calls_and_never_ranks(quick: tuple[dict[str, Any], list[str]]) -> None:
    found, _ = quick
    timing = found["timing"]
    assert "all timed calls agree" in found["message"]
    assert timing.keys() >= TIMING
    assert 6 <= timing["pairs"] <= 20
    assert timing["calls"] == 2 * timing["pairs"]
    assert timing["speedup_low"] <= timing["speedup"] <= timing["speedup_high"]
    assert "unranked_protocol" in found["flags"]
    assert 0 < found["roofline"]["utilisation"] < 1


def test_a_slower_file_is_correct_and_slower(judge: Judge) -> None:
    found = score(judge, "allreduce_in_pieces.py", "quick")

    assert found["verdict"] == "correct"
    assert found["timing"]["speedup_high"] < 1.0


def test_stages_come_in_order(quick: tuple[dict[str, Any], list[str]]) -> None:
    _, stages = quick
    order = ["building", "starting", "correctness", "warmup", "timing", "reporting"]
    assert [stage for stage in order if stage in stages] == [stage for stage in stages if stage in order]
    assert {"starting", "correctness", "warmup", "timing", "reporting"} <= set(stages)


def test_a_seed_replays_the_same_values(judge: Judge, checked: Callable[[str], dict[str, Any]]) -> None:
    name = "tp_rms_norm_forgot_all_reduce.py"
    first = checked(name)

    again = score(judge, name, seed=int(first["seeds"]["secret"]))
    other = score(judge, name)

    assert again["ranks"] == first["ranks"]
    assert other["ranks"] != first["ranks"]


def test_a_deadlock_shows_where_each_rank_waits(checked: Callable[[str], dict[str, Any]]) -> None:
    found = checked("allreduce_deadlock.py")

    assert found["code"] == "timeout.deadlock"
    assert "all_reduce" in found["message"]
    assert {1, 2, 3} <= {row["rank"] for row in found["stacks"]}


def test_the_first_wrong_element_is_told_for_every_rank(checked: Callable[[str], dict[str, Any]]) -> None:
    found = checked("allreduce_without_communication.py")

    assert found["code"] == "incorrect.no_communication_suspected"
    assert len(found["ranks"]) == 4
    for row in found["ranks"]:
        assert row["first_wrong"].keys() >= {"index", "expected", "got"}


def test_a_compiler_error_names_the_authors_line(checked: Callable[[str], dict[str, Any]]) -> None:
    found = checked("allgather_cpp_compile_error.py")

    line = sample("allgather_cpp_compile_error.py").path.read_text().splitlines().index(
        "  std::memcpy(plaec, source.data_ptr(), source.nbytes());"
    ) + 1  # fmt: skip
    assert found["line"] == line
    assert "plaec" in found["message"]
    assert f"line {line}" in found["message"]
    assert not found["build"]["cached"]
    assert found["build"]["seconds"] == pytest.approx(found["durations"]["building"], rel=0.5)


def test_where_nothing_is_built_nothing_came_from_a_cache(checked: Callable[[str], dict[str, Any]]) -> None:
    assert checked("allreduce_without_communication.py")["build"] == {
        "seconds": 0.0,
        "cached": None,
        "units": [],
    }


def test_the_file_to_start_from_is_correct(judge: Judge, tmp_path: Path) -> None:
    problem = load_problem("clip_grad_norm_no_ep")
    spec = {"reference": (problem.folder / "reference.py").read_text()}
    path = tmp_path / starter.name_of(problem.number, problem.slug)
    path.write_text(starter.text_of(problem.number, problem.title, spec))
    assert judge.score(problem=problem.slug, solution=path, protocol="check")["verdict"] == "correct"


def test_a_crash_in_native_code_names_the_authors_line(judge: Judge) -> None:
    path = Path(__file__).resolve().parents[1] / "adversary" / "honest" / "c02_segmentation_fault.py"

    found = judge.score(problem="allreduce", solution=path, protocol="check")

    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "memmove" in text)
    assert (found["code"], found["rank"], found["line"]) == ("runtime_error.sigsegv", 1, line)
    assert found["message"].endswith(f"in line {line}.")


def test_a_rank_that_leaves_is_named_not_those_who_waited_for_it(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "solution.py"
    path.write_text(
        "import os\nimport torch.distributed as dist\n\n\ndef solution(tensor):\n    if dist.get_rank() == 3:\n"
        "        os._exit(0)\n    out = tensor.clone()\n    dist.all_reduce(out)\n    return out\n"
    )
    found = judge.score(problem="allreduce", solution=path, protocol="check")
    assert (found["code"], found["rank"]) == ("runtime_error.exited_early", 3)


def test_a_stop_is_heeded_and_leaves_a_working_judge(judge: Judge) -> None:
    asked = iter([False] * 3)

    with pytest.raises(Stopped):
        score(judge, "allreduce_gather_and_sum.py", should_stop=lambda: next(asked, True))

    assert score(judge, "allreduce_gather_and_sum.py")["verdict"] == "correct"


def test_usage_errors_before_anything_runs(judge: Judge, tmp_path: Path) -> None:
    path = sample("allreduce_gather_and_sum.py").path
    with pytest.raises(UnknownProblem):
        judge.score(problem="no_such_problem", solution=path)
    with pytest.raises(ValueError, match="protocol"):
        judge.score(problem="allreduce", solution=path, protocol="slow")
    with pytest.raises(ValueError, match="no such file"):
        judge.score(problem="allreduce", solution=tmp_path / "missing.py")


@pytest.mark.parametrize(
    ("name", "status"), [("allreduce_gather_and_sum.py", 0), ("allgather_wrong_dtype.py", 1)]
)
def test_exit_status_and_json_of_the_command_line(
    name: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    chosen = sample(name)

    ended = cli.main(
        ["score", "--problem", chosen.problem, "--solution", str(chosen.path), "--protocol", "check", "--quiet",
         "--json", str(out)]
    )  # fmt: skip

    assert ended == status
    found = json.loads(out.read_text())
    assert found["verdict"] == chosen.verdict
    assert chosen.verdict in capsys.readouterr().out


def test_exit_status_of_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    path = sample("allreduce_gather_and_sum.py").path
    assert cli.main(["score", "--problem", "nonsense", "--solution", str(path)]) == 2
    with pytest.raises(SystemExit) as left:
        cli.main(["score"])
    assert left.value.code == 2


class TestWithoutSandbox:
    """A host that can isolate nothing runs bundled samples only, and says so on every result."""

    @pytest.fixture(scope="class")
    def bare(self) -> Iterator[Judge]:
        with pytest.MonkeyPatch.context() as patch:
            report = HostReport("none", ("bubblewrap is missing",), "apt-get install bubblewrap")
            patch.setattr(judge_module, "host_grade", lambda: report)
            with Judge("cpu4") as made:
                yield made

    def test_a_sample_runs_and_carries_the_grade(self, bare: Judge) -> None:
        found = score(bare, "allreduce_gather_and_sum.py")

        assert (found["verdict"], found["isolation_grade"]) == ("correct", "none")

    def test_a_wrong_sample_gets_its_verdict_too(self, bare: Judge) -> None:
        assert score(bare, "allgather_wrong_dtype.py")["verdict"] == "contract_error"

    def test_anything_else_is_refused_with_the_remedy(self, bare: Judge) -> None:
        with pytest.raises(NoSandbox, match="apt-get install bubblewrap") as refused:
            bare.score(problem="allreduce", solution=HONEST / "k01_allreduce_plain.py")
        assert refused.value.code == "host.no_sandbox"


def test_a_real_host_is_not_graded_none_where_a_sandbox_can_be_made() -> None:
    assert host_grade().grade in ("full", "partial", "none")
    assert len(bundled_hashes()) == len(all_samples(None))
