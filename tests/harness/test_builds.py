"""Builds: what a cached library depends on, what is read off a build, and the compiler's first error."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.diagnose.mechanisms import NVLS, SM, TMA, classify, kernels_of
from evaluator.diagnose.native_facts import NativeFacts
from evaluator.harness import builds, verdict
from evaluator.harness.builds import BUILD_PATH, Builder, BuildFailed, source_line
from evaluator.harness.warm import RANK_CODE
from problems.registry import load_target

NATIVE = Path(__file__).parents[1] / "diagnose" / "native"
RECORDED = NATIVE / "kernels.json"
NVCC = shutil.which("nvcc", path=":".join(BUILD_PATH))


def unit(source: str) -> dict[str, Any]:
    lists = ("functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
    empty: dict[str, Any] = {key: [] for key in lists}
    return {"form": "files", "name": "kernels", "sources": {"kernels.cu": source}, **empty} | {
        "extra_cuda_cflags": ["-O3"], "is_python_module": False, "with_cuda": True,
    }  # fmt: skip


def compiled(source: str, folder: Path) -> NativeFacts:
    """One build by the nvcc of this machine, in its sandbox."""
    _, built = Builder(load_target("h200x1"), folder).build([unit(source)], 100.0)
    return built.facts[0]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> NativeFacts:
    """Of `kernels.cu`: built here and now where nvcc is, else as recorded from nvcc 13.0."""
    if NVCC is None:
        return NativeFacts.read(json.loads(RECORDED.read_text()))
    return compiled((NATIVE / "kernels.cu").read_text(), tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def error_log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a misspelt name in `kernels.cu` makes the compiler say."""
    if NVCC is None:
        return (NATIVE / "kernels_error.log").read_text()
    wrong = (NATIVE / "kernels.cu").read_text().replace("unsigned seen;", "unsigned seem;")
    with pytest.raises(BuildFailed) as refused:
        compiled(wrong, tmp_path_factory.mktemp("cache"))
    return refused.value.log


@pytest.mark.processes
def test_registers_and_spills_of_every_kernel(facts: NativeFacts) -> None:
    kernels = facts.kernels()

    assert len(kernels) == 5
    assert "spilling" in kernels[0]["kernel"]
    assert kernels[0]["spill_load_bytes"] > 1000
    assert kernels[0]["registers"] <= 64
    assert [row["spill_load_bytes"] for row in kernels[1:]] == [0] * 4
    bulk = next(row for row in kernels if "bulk" in row["kernel"])
    assert bulk["shared_bytes"] >= 1024
    assert {row["arch"] for row in kernels} == {"sm_90a"}


@pytest.mark.processes
def test_mechanisms_show_in_what_was_built(facts: NativeFacts) -> None:
    names = kernels_of(ptx=facts.ptx)
    found = {m.name: m for m in classify(sass=facts.sass, ptx=facts.ptx, imports=facts.imports).mechanisms}

    assert set(found) == {TMA, NVLS, SM}
    assert [(name, m.certain) for name, m in found.items()] == [(TMA, True), (NVLS, True), (SM, False)]
    assert {e.where for e in found[SM].evidence} == {next(k for k in names if "pull" in k)}


@pytest.mark.processes
def test_hashes_are_kept_with_the_result(facts: NativeFacts) -> None:
    assert {name: len(value) for name, value in facts.hashes().items()} == {
        "ptx_sha256": 64,
        "cubin_sha256": 64,
    }
    assert NativeFacts().hashes() == {}


@pytest.mark.processes
def test_the_first_error_of_nvcc_names_the_authors_line(error_log: str) -> None:
    author = 'import torch\n\nCUDA = r"""\n' + (NATIVE / "kernels.cu").read_text() + '"""\n'
    author = author.replace("unsigned seen;", "unsigned seem;")

    found = verdict.from_build(BuildFailed("compiler", "it did not build", error_log), author)

    assert found.code == "build_error.compiler"
    assert 'identifier "seen" is undefined' in found.message
    assert found.first_line is not None
    assert "ld.acquire.sys" in author.splitlines()[found.first_line - 1]
    assert 'identifier "seen" is undefined' in found.log.splitlines()[0]


def test_a_line_that_stands_twice_is_told_apart_by_the_compilers_number() -> None:
    author = 'A = r"""\nint a;\nx = y;\n"""\nB = r"""\nint b;\nint c;\nx = y;\n"""\n'
    log = 'cuda.cu(7): error: identifier "x" is undefined\n  x = y;\n  ^\n'

    assert source_line(log, author) == ('identifier "x" is undefined', 8)
    assert source_line(log.replace("(7)", "(6)"), author)[1] == 3


def test_lines_of_the_file_are_pythons() -> None:
    """Neither a form feed nor another separator that Unicode knows ends one."""
    author = 'a = 1  # \f \x1d \u2028\r\nB = r"""\nx = y;\n"""\n'
    log = 'cuda.cu(2): error: identifier "y" is undefined\n  x = y;\n  ^\n'

    assert source_line(log, author)[1] == 3


def test_an_error_in_another_file_keeps_its_name_and_line() -> None:
    message, line = source_line('/job/k.cu(5): error: expected a ";"\n  int a\n', "import torch\n")

    assert (message, line) == ('k.cu(5): error: expected a ";"', None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ptxas fatal   : Unresolved extern function '_Z4gonei'", None),
        ("ptxas /tmp/kept/cuda.ptx, line 24; error   : Not a name of any known instruction: 'x'", None),
        ("nvcc fatal   : Unsupported gpu architecture 'sm_999'", None),
        ("nvlink error   : Undefined reference to 'f'", None),
        (
            "/usr/bin/ld: cannot find -lfoo: No such file or directory",
            "ld: cannot find -lfoo: No such file or directory",
        ),
        (
            "/usr/bin/ld: a.o: in function `f()':\na.cpp:2: undefined reference",
            "ld: a.o: in function `f()': a.cpp:2: und",
        ),
        ("cc1plus: fatal error: no more memory", None),
        ("/tmp/x.s: Fatal error: can't write 9 bytes", "x.s: Fatal error: can't write 9 bytes"),
        (
            "/tmp/build/main.cpp:3:18: error: `x` was not declared",
            "main.cpp:3:18: error: `x` was not declared",
        ),
        ("/tmp/build/cuda.cu(3): error #20-D: it is undefined", "cuda.cu(3): error #20-D: it is undefined"),
        ("/tmp/x.s:7: Error: no such instruction: `y'", "x.s:7: Error: no such instruction: `y'"),
    ],
)
def test_the_first_error_of_every_tool_is_told(line: str, told: str | None) -> None:
    quoted = '/tmp/a.cpp:2:9: warning: unused\n    2 |  printf("error: bad");\n      |  ^~\n  puts("error: worse");\n'
    linker = "/usr/bin/ld: warning: x.o: missing .note.GNU-stack\n/usr/bin/ld: NOTE: This is deprecated\n"

    message, _ = source_line(f"Error building extension 'a'\n{quoted}{linker}{line}\n", 'x = "error: bad"\n')

    assert message.startswith(told or line)
    assert source_line(quoted + linker, "") == ("", None)


def test_a_compiler_that_was_ended_for_its_memory_is_told_as_such() -> None:
    killed = json.dumps(
        {"ok": False, "message": "c++: fatal error: Killed signal terminated program cc1plus"}
    )
    for out_of_memory, code in ((True, "memory"), (False, "compiler")):
        with pytest.raises(BuildFailed, match="limit" if out_of_memory else "did not build") as caught:
            builds._library(killed.encode() + b"\n", out_of_memory)
        assert caught.value.code == code
        assert "Killed" in caught.value.log


def test_a_build_that_names_no_error_was_not_refused() -> None:
    failure = BuildFailed("compiler", "the extension did not build", "[Errno 21] Is a directory")
    assert verdict.from_build(failure, "").message == "The extension did not build."


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=x", "-Xcompiler=-fplugin=x", "-Xcompiler=-O3,-fplugin=x", "-Xcompiler=-wrapper,env",
        "-Xcompiler,-specs=x", "-Xcompiler-wrapper", "-Xcompiler=-B,x",
    ],
)  # fmt: skip
def test_the_host_compiler_gets_no_flag_through_nvcc_that_it_does_not_get_itself(flag: str) -> None:
    with pytest.raises(BuildFailed) as refused:
        builds.check_unit(unit("") | {"extra_cuda_cflags": [flag]})
    assert refused.value.code == "flag"


@pytest.mark.parametrize(
    "flag",
    ["-Xcompiler", "-Xcompiler=-fPIC", "-Xcompiler=-O3,-march=native,-Wall", "-Xcompiler,-fopenmp", "-O3"],
)
def test_flags_for_the_host_compiler_that_are_good(flag: str) -> None:
    assert builds.check_unit(unit("") | {"extra_cuda_cflags": [flag]})


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"functions": _deep(2000)}, {"functions": {"f": ["x"]}}, {"sources": {"a.cu": [["x"]]}}, {"form": "other"},
        {"is_python_module": _deep(2000)}, {"extra_sycl_cflags": _deep(2000)}, {"more": 1}, {"sources": []},
    ],
)  # fmt: skip
def test_a_unit_that_no_call_records_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BuildFailed) as refused:
        builds.check_unit(unit("") | fields)
    assert refused.value.code == "malformed"


@pytest.mark.parametrize(
    "name", ["", "..", "a b.cu", "a.cu\nrule x\n  command = id", "$in.cu", "a:b.cu", "ü.cu"]
)
def test_sources_with_names_that_a_build_file_would_read_otherwise_are_refused(name: str) -> None:
    with pytest.raises(BuildFailed, match="source file") as refused:
        builds.check_unit(unit("") | {"sources": {name: ""}})
    assert refused.value.code == "name"


@pytest.mark.parametrize("path", ["/etc", "/usr/x\nrule x\n  command = id", "/usr/a b", "/job/$x", "x"])
def test_include_paths_that_a_build_file_would_read_otherwise_are_refused(path: str) -> None:
    with pytest.raises(BuildFailed, match="include path") as refused:
        builds.check_unit(unit("") | {"extra_include_paths": [path]})
    assert refused.value.code == "include"
    assert builds.check_unit(unit("") | {"extra_include_paths": ["/usr/include/c++/12", "/job"]})


def test_two_sources_of_one_name_are_not_taken_for_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(RANK_CODE))
    extensions = importlib.import_module("extensions")
    paths = [tmp_path / folder / "k.cpp" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"// {path}")

    assert list(extensions.files_unit(str(tmp_path), "mine", str(paths[0]))["sources"]) == ["k.cpp"]
    with pytest.raises(ValueError, match=r"are named k\.cpp"):
        extensions.files_unit(str(tmp_path), "mine", [str(path) for path in paths])


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rank's module that turns calls into units."""
    monkeypatch.syspath_prepend(str(RANK_CODE))
    return importlib.import_module("extensions")


def test_arguments_by_position_are_those_by_name(recorder: Any, tmp_path: Path) -> None:
    """torch takes both. Flags by position were dropped: a file was compiled without its -O3, and nobody told."""
    source = tmp_path / "k.cpp"
    source.write_text("int a;")
    here, path = str(tmp_path), str(source)

    by_position = recorder.files_unit(here, "mine", [path], ["-O3"])
    assert by_position == recorder.files_unit(here, name="mine", sources=path, extra_cflags=["-O3"])
    assert by_position["extra_cflags"] == ["-O3"]
    inline = recorder.inline_unit(here, "mine", "int f();", None, None, ["f"])
    assert inline == recorder.inline_unit(here, "mine", cpp_sources="int f();", functions=["f"])
    with pytest.raises(TypeError, match="sources"):
        recorder.files_unit(here, "mine")


def test_another_file_beside_the_source_is_another_library(recorder: Any, tmp_path: Path) -> None:
    call = (str(tmp_path), "mine", '#include "twice.cu"')
    alone = recorder.inline_unit(*call)
    (tmp_path / "solution.py").write_text("")
    assert recorder.inline_unit(*call) == alone
    found = []
    for factor in (2, 3):
        (tmp_path / "twice.cu").write_text(f"inline float twice(float x) {{ return {factor} * x; }}")
        found.append(recorder.inline_unit(*call))

    assert "beside" not in alone  # what lies in caches keeps its name
    assert len({builds.unit_hash(unit) for unit in (alone, *found)}) == 3


@pytest.mark.parametrize("beside", [None, "0" * 64, {"h" * 302 + ".h": ""}, ["a.h"]])
def test_a_unit_of_other_files_is_refused(beside: Any, tmp_path: Path) -> None:
    """It would be kept under the name that the library of those files has."""
    told = unit("") | ({"beside": beside} if beside else {})
    with pytest.raises(BuildFailed, match="of other files"):
        Builder(load_target("h200x1"), tmp_path).build([told], 10.0, files={"a.h": b"int a;"})
    if beside:
        with pytest.raises(BuildFailed, match="of other files"):
            Builder(load_target("h200x1"), tmp_path).build([told], 10.0, files={"solution.py": b""})


def test_kernels_with_long_names_have_rows_of_their_own() -> None:
    def told(name: str, spilt: int) -> str:
        head = f"ptxas info    : Compiling entry function '{name}' for 'sm_90a'\n"
        return f"{head}    0 bytes stack frame, {spilt} bytes spill stores, {spilt} bytes spill loads\n"

    rows = NativeFacts(resources=told("short", 8) + told("l" * 5000, 4)).kernels()

    assert [(len(row["kernel"]), row["spill_load_bytes"]) for row in rows] == [(5, 8), (400, 4)]


def test_comments_in_ptx_are_no_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RANK_CODE))
    shorter = importlib.import_module("native_facts").shorter_ptx

    hidden = "// multimem.st.global\n/* multimem.red\n multimem.ld_reduce */ st.global.u32 [a], b;\n"
    assert (
        shorter(f".entry k(\n{hidden}@/*ld.x*/\n%p0 nop;\n@ld.\n")
        == ".entry k(\n  st.global.u32 [a], b;\n  @ld."
    )


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts an nvcc that names the given release in front of all others."""
    monkeypatch.setattr(builds, "BUILD_PATH", (str(tmp_path), *BUILD_PATH))

    def install(release: str) -> None:
        path = tmp_path / "nvcc"
        path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}'\n")
        path.chmod(0o755)

    return install


def test_another_nvcc_is_another_toolchain(compiler: Callable[[str], None]) -> None:
    compiler("13.0, V13.0.88")
    first = builds.toolchain("90a")
    compiler("13.1, V13.1.101")
    second = builds.toolchain("90a")

    assert "V13.0.88" in first
    assert "V13.1.101" in second
    assert builds.toolchain("100a") != second


@pytest.mark.parametrize(
    "claim",
    [None, 7, [], {"ptx": 5}, {"resources": "x" * (1 << 20)}, {"ptx_sha256": "<script>"}, {"other": "a"}],
)
def test_facts_that_can_be_none_are_dropped(claim: Any) -> None:
    assert NativeFacts.read(claim) == NativeFacts()


def test_a_library_without_its_facts_is_built_again(tmp_path: Path) -> None:
    cache = builds.BuildCache(tmp_path)
    path = cache.put("abc", b"library", NativeFacts(ptx=".entry k"))

    assert cache.get("abc") == (path, NativeFacts(ptx=".entry k"))
    (tmp_path / "abc.json").unlink()
    assert cache.get("abc") is None


def test_all_units_of_a_file_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, limits = [0.0], []

    class Clock:
        def clock(self) -> float:
            return now[0]

    def compile_slowly(
        self: Builder, unit: Any, files: Any, limit_s: float, *_: Any
    ) -> tuple[bytes, NativeFacts]:
        limits.append(limit_s)
        now[0] += 40.0
        return b"library", NativeFacts.read(None)

    monkeypatch.setattr(Builder, "_compile", compile_slowly)
    monkeypatch.setattr(builds, "toolchain", lambda arch: "none")
    units = [unit(f"int f{n}();") for n in range(4)]
    Builder(load_target("h200x1"), tmp_path).build(units, 100.0, None, Clock())  # type: ignore[arg-type]
    assert limits == [100.0, 60.0, 20.0, 0.0]


def test_what_a_file_asked_for_is_remembered_for_its_content(tmp_path: Path) -> None:
    builder, files = Builder(load_target("cpu4"), tmp_path), {"solution.py": b"one"}
    assert builder.remembered(files) is None

    builder.remember(files, [unit("x")])

    assert builder.remembered(files) == [unit("x")]
    assert builder.remembered({"solution.py": b"two"}) is None
    assert builder.remembered({**files, "kernels.cu": b""}) is None
    assert Builder(load_target("h200x1"), tmp_path).remembered(files) is None


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[" * 100000])
def test_a_memory_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    builder, files = Builder(load_target("cpu4"), tmp_path), {"solution.py": b"one"}
    builder.remember(files, [unit("x")])
    next(tmp_path.glob("*.units")).write_text(content)

    assert builder.remembered(files) is None


def test_what_is_remembered_counts_for_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "MAX_CACHE", 4000)
    monkeypatch.setattr(builds, "LEAST_KEPT", 0)
    cache = Builder(load_target("cpu4"), tmp_path).cache
    cache.put("library", b"x" * 1500, NativeFacts())
    for number, age in ((1, 100), (2, 50)):
        cache.keep_units(f"key{number}", [unit("y" * 1000)])
        stamp = time.time() - age
        os.utime(tmp_path / f"key{number}.units", (stamp, stamp))
    cache.keep_units("key3", [unit("y" * 1000)])

    assert cache.units("key1") is None
    assert cache.units("key3") is not None
    assert cache.get("library") is not None


def test_small_files_that_are_kept_have_a_greatest_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "MAX_CACHE", 3 * builds.LEAST_KEPT)
    cache = Builder(load_target("cpu4"), tmp_path).cache
    for number in range(10):
        cache.keep_units(f"key{number}", [1])

    assert len(list(tmp_path.iterdir())) == 3
    assert cache.units("key9") == [1]


def test_the_words_of_a_compiler_that_was_taken_over_are_not_read_at_any_length() -> None:
    said = b'{"ok": true, "facts": {}, "x": [' + b"[]," * (builds.MAX_WORDS // 3) + b"[]]}"
    with pytest.raises(BuildFailed) as failed:
        builds._library(said + b"\nlibrary", out_of_memory=False)
    assert failed.value.code == "crashed"
    assert builds._library(b'{"ok": true}\nlibrary', out_of_memory=False)[0] == b"library"
