"""Flags of the static scan: what raises one, what does not, and that nothing makes it fail."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from evaluator.diagnose import native
from evaluator.diagnose.flags import SENTENCES, Findings
from evaluator.diagnose.triage import scan

ADVERSARY = Path(__file__).resolve().parents[1] / "adversary"
PLAIN = """\
import torch.distributed as dist

def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


def codes(text: str, **files: bytes) -> set[str]:
    named = {name.replace("_cu", ".cu"): content for name, content in files.items()}
    return {flag.code for flag in scan({"solution.py": textwrap.dedent(text).encode(), **named})}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import torch\nsetattr(torch, 'equal', None)", "patches_modules"),
        ("import torch\ntorch.equal = None", "patches_modules"),
        ("import torch\nt = torch\nt.Tensor.equal = None", "patches_modules"),
        ("from torch import Tensor\nTensor.equal, x = 1, 2", "patches_modules"),
        ("import time\nvars(time)['time'] = len", "patches_modules"),
        ("import time\ntime.__dict__.update(time=len)", "patches_modules"),
        ("import importlib\nsetattr(importlib.import_module('tor' + 'ch'), 'x', 1)", "patches_modules"),
        ("import torch\ndel torch.equal", "patches_modules"),
        ("import torch\nfor torch.x in range(3): pass", "patches_modules"),
        ("import sys\nsys.modules['torch'] = None", "changes_imports"),
        ("import sys\nsys.modules['torch'].equal = None", "patches_modules"),
        ("import sys\nsys.path.insert(0, '.')", "changes_imports"),
        ("import torch\ntorch.backends.cuda.matmul.allow_tf32 = True", "changes_settings"),
        ("import socket", "opens_sockets"),
        ("import urllib.request", "opens_sockets"),
        ("__import__('socket')", "opens_sockets"),
        ("import subprocess as s", "spawns_processes"),
        ("from torch import multiprocessing", "spawns_processes"),
        ("import os\nif os.fork(): pass", "spawns_processes"),
        ("import os\ngetattr(os, 'fork')()", "spawns_processes"),
        ("from os import execv", "spawns_processes"),
        ("import threading", "starts_threads"),
        ("from concurrent.futures import ThreadPoolExecutor as T", "starts_threads"),
        ("open('/proc/self/maps')", "reads_process_files"),
        ("import os\nx = os.environ['SECRET_KEY']", "reads_environment"),
        ("import os\nx = dict(os.environ.items())", "reads_environment"),
        ("import os\nx = os.getenv('HOSTNAME')", "reads_environment"),
        ("import sys\nsys._getframe(1)", "walks_frames"),
        ("import gc\ngc.get_objects()", "walks_frames"),
        ("import sys\nfor m in list(sys.modules.values()): pass", "walks_frames"),
        ("def f(x):\n    return x.f_back", "walks_frames"),
        ("import ctypes", "uses_ctypes"),
        ("exec('x = 1')", "runs_generated_code"),
        ("try:\n    x = 1\nexcept:\n    x = 2", "catches_everything"),
        ("try:\n    x = 1\nexcept (ValueError, Exception):\n    x = 2", "catches_everything"),
        ("import contextlib\nwith contextlib.suppress(Exception):\n    x = 1", "catches_everything"),
        (PLAIN, "library_only"),
    ],
)
def test_what_raises_a_flag(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize(
    "text",
    [
        "import gc\ngc.collect()",
        "import os\nRANK = int(os.environ['RANK'])\nX = os.environ.get('CUDA_VISIBLE_DEVICES')",
        "import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'",
        "class A:\n    def __init__(self):\n        self.torch = 1",
        "import torch\nx = torch.zeros(3)\nx.requires_grad = True\nx.data = x",
        "try:\n    x = 1\nexcept Exception as e:\n    raise RuntimeError from e",
        "try:\n    x = 1\nexcept ValueError:\n    x = 2",
        "'''The /proc of this function is in its docs.''' * 1",
        "import sys\nif 'torch' in sys.modules and sys.path:\n    pass",
        "def solution(:",
    ],
)
def test_what_raises_none(text: str) -> None:
    assert codes(text) - {"reads_process_files"} == set()


def test_a_kernel_of_its_own_is_not_library_only() -> None:
    inline = (
        PLAIN
        + '\nfrom utils.cuda_helpers import compile_cuda_extension\nCU = """\n__global__ void k() {}\n"""\n'
    )
    assert "library_only" not in codes(inline)
    assert "library_only" not in codes(PLAIN, kernel_cu=b"__global__ void k() {}")
    assert "library_only" not in codes(PLAIN + "import triton\n")
    assert "library_only" in codes(PLAIN + "import json\njson.load\n")


def test_native_text_is_read_by_tokens_and_its_lines_count() -> None:
    source = b'// socket(1)\n/* fork();\n */ const char* s = "fork()";\nint x = fork ();\nauto t = std::thread(f);\n'
    found = {(f.code, f.line, f.file) for f in scan({"solution.py": b"", "a.cu": source})}
    assert found == {("spawns_processes", 4, "a.cu"), ("starts_threads", 5, "a.cu")}
    inside = 'x = 1\nSRC = r"""\n#include <dlfcn.h>\ntry { f(); } catch (...) { g(); }\n'
    inside += 'auto p = fopen("/proc/self/mem", "r");\n"""\n'
    found = {(f.code, f.line, f.file) for f in scan({"solution.py": inside.encode()})}
    assert found == {
        ("uses_ctypes", 3, "solution.py"),
        ("catches_everything", 4, "solution.py"),
        ("reads_process_files", 5, "solution.py"),
    }


def test_methods_and_own_names_are_no_calls_into_the_system() -> None:
    source = b"stream.connect(x); queue->system(y); int forked = my_fork(); pool.thread(1);"
    assert scan({"solution.py": b"", "a.cu": source}) == []


def test_a_copy_of_the_reference_is_told() -> None:
    with_notes = '"""Mine."""\n' + PLAIN.replace("def solution", "# fast\n\ndef solution")
    assert [f.code for f in scan({"solution.py": with_notes.encode()}, reference=PLAIN)] == ["reference_copy"]
    assert [f.code for f in scan({"solution.py": PLAIN.replace("out", "o").encode()}, reference=PLAIN)] == [
        "library_only"
    ]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"x = " + b"-" * 60_000 + b"1", b"x = " + b"(" * 5000, b"a" + b".b" * 20_000],
)
def test_no_source_makes_the_scan_fail(content: bytes) -> None:
    for flag in scan({"solution.py": content, "a.cu": content}, reference=PLAIN):
        assert flag.code == "unreadable"


def test_flags_are_counted_and_those_for_review_come_first() -> None:
    text = PLAIN + "import torch\ntorch.a = 1\ntorch.b = 2\n"
    flags = scan({"solution.py": text.encode()})
    assert [(f.code, f.line, f.count, f.weight) for f in flags] == [
        ("patches_modules", 8, 2, "review"),
        ("library_only", 5, 1, "note"),
    ]
    assert flags[0].as_json()["sentence"] == SENTENCES["patches_modules"][1]


def test_a_flag_without_its_sentence_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        Findings().add("no_such_flag", 1)


def test_attacks_that_show_are_flagged_and_honest_files_are_read() -> None:
    """Flags may be raised on honest files; whether they are says nothing about the verdict."""
    wanted = {"s01": "patches_modules", "s18": "walks_frames", "s33": "patches_modules", "s38": "spawns_processes",
              "s46": "opens_sockets", "s49": "reads_process_files"}  # fmt: skip
    for start, code in wanted.items():
        (path,) = (ADVERSARY / "attacks").glob(f"{start}_*.py")
        assert code in codes(path.read_text()), path.name
    honest = sorted((ADVERSARY / "honest").glob("*.py"))
    assert honest
    for path in honest:
        flags = scan({"solution.py": path.read_bytes()})
        assert {flag.code for flag in flags} <= set(SENTENCES)
        assert "unreadable" not in {flag.code for flag in flags}


def test_a_file_too_long_to_be_looked_through_is_flagged() -> None:
    chains = "\n".join("torch" + ".a" * 90 for _ in range(1200))
    assert codes(f"import torch\n{chains}") == {"unreadable"}


def test_a_chain_longer_than_any_name_means_nothing() -> None:
    assert codes("import sys\nx = sys" + ".a" * 200) == set()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("opened", ['R"(', 'R"aaaaaaaaaaaa(', '"\\', "'\\", "/*", '"', "'a", "#include <"])
def test_what_is_opened_and_never_closed_is_read_once(opened: str) -> None:
    """Such a file of 1 MiB took a worker for most of an hour, in code that no timeout interrupts."""
    text = opened * (500_000 // len(opened))
    findings = Findings()
    native.scan(text, findings, file="a.cu")
    assert findings.flags() == []


def test_digit_separators_and_short_literals_hide_nothing() -> None:
    findings = Findings()
    native.scan("int a = 1'000; char b = '\\x41'; system(c);", findings, file="a.cu")
    assert [flag.code for flag in findings.flags()] == ["spawns_processes"]
