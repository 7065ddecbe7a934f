"""score-many: which files, which verdicts are expected, limits; and what cards change around a job."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.harness import many, warm
from evaluator.harness.cli import main
from evaluator.harness.errors import SizeTooLarge, Stopped
from evaluator.harness.many import Expected, Task, find, listed, to_score
from evaluator.harness.rank.recipe import Decoder, reader
from evaluator.harness.samples import FOLDER, all_samples
from evaluator.harness.source import solution_files
from problems.registry import load_problem, load_target

CHEATS = Path(__file__).resolve().parents[1] / "adversary" / "cuda" / "manifest.toml"


def test_published_file_names_find_their_problem(tmp_path: Path) -> None:
    for name in (
        "1_allreduce_cuda.py",
        "18_tp_rms_norm_cpp.py",
        "allgather.zip",
        "notes.txt",
        "something_else.py",
    ):
        (tmp_path / name).write_text("")
    found = [(slug, path.name) for slug, path in find(tmp_path, ranks=4)]
    assert found == [
        ("tp_rms_norm", "18_tp_rms_norm_cpp.py"),
        ("allreduce", "1_allreduce_cuda.py"),
        ("allgather", "allgather.zip"),
    ]
    files, _ = to_score(target="cpu4", folder=tmp_path, problems=["18"])
    assert [path.name for _, path in files] == ["18_tp_rms_norm_cpp.py"]


def test_names_that_say_no_problem_are_told_and_nothing_else_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("1_all_reduce_cuda.py", "2_allreduce.py", "read me.py"):
        (tmp_path / name).write_text("def solution(x): pass")
    assert main(["score-many", "--folder", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "1_all_reduce_cuda.py: left out. There is no problem 'all_reduce'. Did you mean allreduce" in told
    assert "2_allreduce.py: left out. allreduce is problem 1, not 2" in told
    assert "read me.py: left out. Name files N_slug_backend.py" in told
    assert "Backends: cuda, triton, parallelkittens, cpp." in told


def test_a_manifest_without_files_for_the_target_does_not_stand_for_the_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.toml").write_text(
        '[[samples]]\nfile = "a.py"\nproblem = "allreduce"\nverdict = "correct"\ntarget = "h200x1"\n'
    )
    assert main(["score-many", "--manifest", str(tmp_path / "m.toml"), "--target", "cpu4"]) == 2
    assert "it names no file for cpu4" in capsys.readouterr().err


def test_a_manifest_names_files_of_one_target_and_their_verdicts() -> None:
    files, expected = listed(FOLDER / "samples.toml", "h200x1")
    assert len(files) == 7
    assert all(path.exists() for _, path in files)
    assert set(expected.values()) == {Expected(("correct",))}


def test_what_is_written_for_cards_is_listed_for_every_target_with_cards() -> None:
    assert listed(FOLDER / "samples.toml", "h100x4") == listed(FOLDER / "samples.toml", "h200x1")
    cpu, _ = listed(FOLDER / "samples.toml", "cpu4")
    assert not {path for _, path in cpu} & {path for _, path in listed(FOLDER / "samples.toml", "h200x2")[0]}


def test_no_cheat_on_cards_may_end_as_correct() -> None:
    files, expected = listed(CHEATS, "h200x1")
    assert len(files) == 7
    for name, wanted in expected.items():
        assert "correct" not in wanted.verdicts or wanted.speedup_below, name


@pytest.mark.parametrize(
    ("verdict", "low", "met"),
    [("correct", 0.9, True), ("correct", 1.2, False), ("correct", None, True), ("incorrect", 0.9, False)],
)
def test_a_file_that_may_be_correct_must_not_be_fast(verdict: str, low: float | None, met: bool) -> None:
    row = {"verdict": verdict, "timing": None if low is None else {"speedup_low": low}}
    assert Expected(("correct",), 1.1).met(row) is met


def test_the_demo_submits_what_runs_on_this_cpu() -> None:
    assert {sample.target for sample in all_samples()} == {"cpu4"}
    assert {sample.target for sample in all_samples(None)} == {"cpu4", "h200x1"}


class SlowJudge:
    """Stops when asked to, as the judge does."""

    def score(self, *, should_stop: Any, **_: Any) -> dict[str, Any]:
        if should_stop():
            raise Stopped
        return {"problem": {"slug": "x"}, "verdict": "correct", "code": "correct", "message": ""}


def test_a_file_over_its_limit_is_a_fault_of_ours() -> None:
    judge: Any = SlowJudge()
    assert many._one(judge, Task("x", "x.py", None, "check", -1.0))["code"] == "wall_limit"
    assert many._one(judge, Task("x", "x.py", None, "check", 60.0))["verdict"] == "correct"


def test_a_size_that_does_not_fit_costs_its_own_row_only() -> None:
    class Refusing:
        def score(self, **_: Any) -> dict[str, Any]:
            raise SizeTooLarge("size large does not fit")

    judge: Any = Refusing()
    row = many._one(judge, Task("x", "x.py", "large", "check", 60.0))
    assert (row["code"], row["message"]) == ("size.too_large_for_target", "size large does not fit")


def _encrypted(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("solution.py", "def solution(x): return x\n")
    data = bytearray(path.read_bytes())
    data[data.find(b"PK\3\4") + 6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)


def _twice(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("solution.py", "a = 1\n")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("solution.py", "a = 2\n")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_bytes(b"junk"), "not a readable zip"),
        (_encrypted, "not a readable zip"),
        (_twice, "the archive holds solution.py twice"),
    ],
)
def test_a_zip_that_cannot_be_read_is_its_authors(tmp_path: Path, make: Any, told: str) -> None:
    path = tmp_path / "allreduce.zip"
    make(path)

    class Reading:
        def score(self, solution: Path, **_: Any) -> dict[str, Any]:
            return dict(solution_files(solution))

    judge: Any = Reading()
    row = many._one(judge, Task("allreduce", str(path), None, "check", 60.0))
    assert (row["verdict"], row["code"]) == ("contract_error", "contract_error.file")
    assert told in row["message"]


def test_a_fault_of_ours_with_one_file_costs_its_own_row_only() -> None:
    class Broken:
        def score(self, **_: Any) -> dict[str, Any]:
            raise ValueError("Exceeds the limit (4300 digits)")

    judge: Any = Broken()
    row = many._one(judge, Task("x", "x.py", None, "check", 60.0))
    assert (row["verdict"], row["message"]) == ("infra_error", "ValueError: Exceeds the limit (4300 digits)")


def test_side_by_side_only_without_a_clock() -> None:
    with pytest.raises(ValueError, match="never two timed jobs"):
        many.score_many("cpu4", [], size=None, protocol="quick", workers=2, out=None)


def test_ranks_on_one_card_get_a_daemon_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/home/somebody/lib")
    env = warm.base_env(load_target("h200x1"), "/usr")
    assert env["CUDA_MPS_PIPE_DIRECTORY"].startswith("/tmp/")
    assert env["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    monkeypatch.setenv("PKB_MPS", "0")
    assert "CUDA_MPS_PIPE_DIRECTORY" not in warm.base_env(load_target("h200x1"), "/usr")
    assert "CUDA_MPS_PIPE_DIRECTORY" not in warm.base_env(load_target("h200x4"), "/usr")
    assert "LD_LIBRARY_PATH" not in warm.base_env(load_target("cpu4"), "/usr")


def test_multicast_stays_off_where_cards_are_shared() -> None:
    for name in ("h200x1", "h200x2", "h200x4"):
        env = warm.base_env(load_target(name), "/usr")
        assert env["NCCL_NVLS_ENABLE"] == "0"
        assert env["TORCH_SYMM_MEM_DISABLE_MULTICAST"] == "1"


def test_entries_replaced_in_a_list_go_back_to_their_places() -> None:
    slot = memoryview(bytearray(64))
    node = {"l": [{"t": ["float32", [2], None, 0, False]}, {"t": ["float32", [2], None, 32, False]}]}
    decoder = Decoder(reader(slot), {})
    first, second = decoder.decode(node)
    first.fill_(1.0)
    second.fill_(2.0)
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    decoder.replaced(node, [first, second], found)
    assert found == []
    decoder.replaced(node, [second, torch.full((2,), 3.0)], found)
    for place, value in found:
        place.copy_(value)
    assert [tensor.tolist() for tensor in decoder.decode(node)] == [[2.0, 2.0], [3.0, 3.0]]


def test_a_replacement_of_another_shape_is_left_alone() -> None:
    slot = memoryview(bytearray(64))
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    Decoder(reader(slot), {}).replaced({"t": ["float32", [2], None, 0, False]}, torch.zeros(3), found)
    assert found == []


def test_of_the_whole_catalogue_only_what_is_defined_and_wanted_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    two = [slug for slug, _ in to_score(target="h200x2", left_out=["68"])[0]]
    four = [slug for slug, _ in find(None, ranks=4)]
    assert set(four) - set(two) == {"moe_ep_narrow", "gnn_sparse_feature_fetch_projection"}
    told = capsys.readouterr().err
    assert "moe_ep_narrow: left out, not defined for 2 ranks" in told
    assert "gnn_sparse_feature_fetch_projection: left out as asked" in told


def test_chosen_problems_are_chosen_wherever_the_files_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = FOLDER / "samples.toml"
    chosen, expected = to_score(target="cpu4", manifest=manifest, problems=["2"])
    assert {slug for slug, _ in chosen} == {"allgather"}
    assert {path.name for _, path in chosen} <= set(expected)
    rest, _ = to_score(target="cpu4", manifest=manifest, left_out=["allgather"])
    assert len(chosen) + len(rest) == len(to_score(target="cpu4", manifest=manifest)[0])

    assert main(["score-many", "--manifest", str(manifest), "--problem", "hyena_forward_cp"]) == 2
    assert "samples.toml: no file for hyena_forward_cp" in capsys.readouterr().err
    assert main(["score-many", "--problem", "2", "--leave-out", "2"]) == 2
    assert "--leave-out leaves nothing" in capsys.readouterr().err


def test_a_manifest_may_name_problems_by_number(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('[[samples]]\nfile = "a.py"\nproblem = 2\nverdict = "correct"\n')
    assert to_score(target="cpu4", manifest=tmp_path / "m.toml")[0] == [("allgather", tmp_path / "a.py")]


@pytest.mark.parametrize(
    "command",
    [
        ["score", "--problem", "allreduce", "--protocol", "check"],
        ["score-many", "--workers", "2"],
        ["score-many"],
    ],
)
@pytest.mark.parametrize("target", ["h200x1", "h200x2"])
def test_a_machine_without_the_targets_cards_is_nobodys_fault(
    command: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        ["--solution", str(load_problem("allreduce").folder / "reference.py")] if "score" in command else []
    )
    assert main([*command, *more, "--target", target]) == 2
    told = capsys.readouterr().err
    assert "this host has 0 cards" in told
    assert "docs/gpu-hosts.md" in told
    assert "fault" not in told
