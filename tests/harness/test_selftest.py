"""The host self-test: what it makes of rates, and one whole run for cpu4."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluator.harness import cli, selftest
from problems.registry import load_target


def test_rates_are_read_from_the_log_of_any_rank() -> None:
    log = {"rank 1 stdout": "hello", "rank 0 stdout": 'x\nRATES {"copy_gbs": 4.0, "matrix_tflops": 2}\n'}
    assert selftest.rates(log) == {"copy_gbs": 4.0, "matrix_tflops": 2.0}
    assert selftest.rates({"rank 0 stdout": "nothing"}) is None


@pytest.mark.parametrize(("copy", "matrix", "ok"), [(4052, 766, [True, True]), (1000, 766, [False, True])])
def test_cards_are_held_against_their_peaks(copy: float, matrix: float, ok: list[bool]) -> None:
    checks = selftest.rate_checks({"copy_gbs": copy, "matrix_tflops": matrix}, load_target("h200x1"))
    assert [check.ok for check in checks] == ok


def test_cpu_targets_have_no_peaks_to_miss() -> None:
    checks = selftest.rate_checks({"copy_gbs": 0.5, "matrix_tflops": 0.001}, load_target("cpu4"))
    assert all(check.ok for check in checks)


def test_a_probe_that_said_nothing_fails() -> None:
    assert [check.ok for check in selftest.rate_checks(None, load_target("cpu4"))] == [False]


def test_cards_must_build_and_run_our_kernels() -> None:
    on_card = selftest.known_kernels(load_target("h100x4"))
    assert [path.name for _, _, path in on_card[1:]] == [
        "allgather_vector_pull_cuda.py",
        "allreduce_two_shot_cuda.py",
    ]
    assert len(selftest.known_kernels(load_target("cpu4"))) == 1


def test_a_host_without_pythons_header_is_told_what_to_install(tmp_path: Path) -> None:
    (check,) = selftest.build_checks(load_target("cpu4"), include=tmp_path)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert not check.ok
    assert f"{tmp_path}/Python.h is missing" in check.told
    assert f"install python{version}-dev (" in check.told
    (tmp_path / "Python.h").write_text("")
    assert selftest.build_checks(load_target("cpu4"), include=tmp_path)[0].ok


def test_compilers_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "program", lambda name: None)
    told = {name: selftest.build_checks(load_target(name))[0].told for name in ("cpu4", "h100x4")}
    assert "no c++: install g++" in told["cpu4"]
    assert "nvcc" not in told["cpu4"]
    assert "no nvcc: install the CUDA toolkit" in told["h100x4"]


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_this_host_passes_for_cpu4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    code = cli.main(["selftest", "--target", "cpu4", "--json", str(out)])
    found = json.loads(out.read_text())
    assert found["ok"] is (code == 0)
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["what extensions are built with"]["ok"], by_name
    assert by_name["4 ranks join over gloo"]["ok"], by_name
    assert found["rates"]["copy_gbs"] > 0
    assert "copy rate" in capsys.readouterr().out


@pytest.mark.parametrize(("grade", "cpu", "cards"), [("full", True, True), ("partial", True, False)])
def test_a_plain_users_isolation_does_where_boards_take_it(
    monkeypatch: pytest.MonkeyPatch, grade: str, cpu: bool, cards: bool
) -> None:
    monkeypatch.setattr(selftest, "host_grade", lambda fresh: SimpleNamespace(grade=grade, reasons=[]))
    inside = SimpleNamespace(problems=[], ok=True, seconds=1.0)
    monkeypatch.setattr(selftest, "self_check", lambda **options: inside)
    for target, enough in (("cpu4", cpu), ("h200x1", cards), ("h100x4", cards)):
        checks = {check.name: check for check in selftest.sandbox_checks(load_target(target))}
        assert checks["isolation grade"].ok is enough
        assert checks["isolation grade"].told == grade
