"""What ranks tell when they fail, and the verdict that comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from evaluator.harness import verdict
from evaluator.harness.check import check_rank
from evaluator.harness.reports import JobFailed, RankReport, own_frames, read_message, spans, told
from problems.leaves import Answer
from problems.registry import load_problem

COMPILER = """Error building extension 'x': [1/2] c++ main.cpp
/tmp/x/main.cpp:4:9: error: 'foo' was not declared in this scope
"""


def failed(kind: str, reports: list[RankReport], phase: str = "call", **fields: Any) -> verdict.Verdict:
    failure = JobFailed(kind, phase, reports)
    for name, value in fields.items():
        setattr(failure, name, value)
    return verdict.from_failure(failure)


def error(rank: int, kind: str, message: str, **fields: Any) -> RankReport:
    return RankReport(rank, "error", told({"type": kind, "message": message, **fields}))


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff", b"[" * 100000, b'{"a": 1' + b"0" * 5000 + b"}"])
def test_a_message_that_is_none_becomes_an_empty_one(data: bytes) -> None:
    assert read_message(data) == {}


@pytest.mark.parametrize(
    "claim",
    [
        None,
        [],
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        [1, 2, 3, "4"],
        [4, 3, 2, 1],
        [2, 1, 3, 4],
        [1, 2, 4, 3],
        [-1, 0, 1, 2],
        [0, 1, 2, 10**400],
        [0.0, 1, 2, 3],
        [0, True, 2, 3],
    ],
)
def test_clock_readings_that_cannot_be_true_are_dropped(claim: Any) -> None:
    assert spans(claim) is None


def test_clock_readings() -> None:
    found = spans([1, 2, 2, 4])
    assert found is not None
    assert (found.woken, found.began, found.returned, found.ended) == (1, 2, 2, 4)


@pytest.mark.parametrize("line", [0, -1, 10**300, "7", True, None, 1.5])
def test_a_line_number_that_can_be_none_is_dropped(line: Any) -> None:
    assert told({"type": "E", "message": "m", "line": line})["line"] is None


def test_words_are_cleaned_and_capped() -> None:
    record = told(
        {"type": "\x1b]0;t\x07E" * 50, "message": "a\x00\ud800\x1b[2Jb" + "x" * 99999, "traceback": 5}
    )

    json.dumps(record).encode()
    assert len(record["type"]) <= 80
    assert len(record["message"]) <= 16000
    assert record["message"].startswith("a?b")
    assert "\x00" not in record["message"]


def test_frames_of_the_shim_are_left_out() -> None:
    assert own_frames('File "/job/solution.py", line 1\nFile "/opt/pkb/rank/shim.py", line 2') == (
        'File "/job/solution.py", line 1'
    )


@pytest.mark.parametrize(
    ("reports", "phase", "code"),
    [
        ([error(2, "ValueError", "no", line=7)], "call", "runtime_error.exception"),
        ([error(0, "ImportError", "no module named x")], "import", "runtime_error.import"),
        ([error(0, "MemoryError", "")], "call", "out_of_memory.allocation"),
        ([error(0, "RuntimeError", COMPILER)], "import", "build_error.compiler"),
        ([error(0, "AttributeError", "the file defines no callable named `solution`")], "import",
         "contract_error.no_solution"),
        ([error(0, "TypeError", "solution() takes 1", outside=True)], "call", "contract_error.signature"),
        ([RankReport(1, "exited", exit_code=-11)], "call", "runtime_error.sigsegv"),
        ([RankReport(1, "exited", exit_code=0)], "call", "runtime_error.exited_early"),
        ([RankReport(1, "closed")], "call", "runtime_error.exited_early"),
    ],
)  # fmt: skip
def test_codes(reports: list[RankReport], phase: str, code: str) -> None:
    assert failed("error" if reports[0].error else "exit", reports, phase).code == code


def test_cuda_sources_that_are_built_in_a_call_are_refused_in_words() -> None:
    home = "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
    found = failed("error", [error(0, "OSError", home)], "call")
    assert found.code == "build_error.needs_cuda"
    assert found.message.endswith("call `load_inline` at its top, not in `solution`.")


FRAMES = (
    '  File "<python>/ctypes/__init__.py", line 519 in x\n  File "/job/solution.py", line 4 in solution\n'
)


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (f"Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n{FRAMES}\n", 4),
        (
            f"Thread 0x2 (most recent call first):\n{FRAMES}\nCurrent thread 0x1 (most recent call first):\n",
            None,
        ),
        (f"a traceback of the file's own:\n{FRAMES}", None),
        (f"Current thread 0x1 (most recent call first):\n{FRAMES.replace('4', '4' * 5000)}", None),
        ("", None),
    ],
)
def test_a_signal_is_told_with_the_line_of_the_thread_it_met(stderr: str, line: int | None) -> None:
    crash = failed("exit", [RankReport(1, "exited", exit_code=-6)])

    found = verdict.at_line(crash, stderr)

    assert found.first_line == line
    assert found.message == crash.message[:-1] + (f" in line {line}." if line else ".")


def test_the_cause_goes_before_its_echo() -> None:
    found = failed(
        "error",
        [
            error(0, "RuntimeError", "Connection closed by peer [127.0.0.1]"),
            error(3, "IndexError", "out of range"),
        ],
    )

    assert (found.rank, found.code) == (3, "runtime_error.exception")
    assert "IndexError" in found.message


@pytest.mark.parametrize(
    "noticed",
    [
        "[../gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: Connection reset by peer",
        "NCCL error: ncclRemoteError: a call failed since a remote process exited",
    ],
)
@pytest.mark.parametrize(("code", "kind"), [(0, "exited_early"), (1, "exited_early"), (-11, "sigsegv")])
def test_who_left_without_a_word_goes_before_those_who_noticed(noticed: str, code: int, kind: str) -> None:
    there = [error(0, "RuntimeError", noticed, line=8), error(1, "DistBackendError", noticed)]
    found = failed("error", [*there, RankReport(3, "exited", exit_code=code)])
    assert (found.rank, found.code, found.first_line) == (3, f"runtime_error.{kind}", None)


def test_whoever_raised_for_a_reason_of_its_own_goes_before_who_left() -> None:
    found = failed("error", [error(0, "IndexError", "out of range"), RankReport(3, "exited", exit_code=1)])
    assert (found.rank, found.code) == (0, "runtime_error.exception")


def test_a_rank_that_raised_and_then_ended_did_not_leave() -> None:
    ended = error(0, "RuntimeError", "Connection reset by peer")
    ended.exit_code = 1
    found = failed("error", [ended, RankReport(1)])
    assert (found.rank, found.code) == (0, "runtime_error.exception")


def test_the_memory_limit_explains_every_death() -> None:
    found = failed("exit", [RankReport(0, "exited", exit_code=-9)], out_of_memory=True)

    assert found.verdict == "out_of_memory"


def test_a_deadlock_says_who_waits_where() -> None:
    stack = 'File "x/distributed_c10d.py", line 3 in all_reduce\nFile "/job/solution.py", line 9 in solution'
    found = failed("deadline", [RankReport(0, "done"), RankReport(1, "waiting")], stacks={1: stack})

    assert found.code == "timeout.deadlock"
    assert "rank 1 in all_reduce (line 9)" in found.message


def test_a_hang_of_all_is_no_deadlock() -> None:
    assert failed("deadline", [RankReport(0), RankReport(1)]).code == "timeout.hang"


def test_an_own_message_on_our_channel_is_the_only_protocol_rejection() -> None:
    assert failed("protocol", [RankReport(0)]).code == "rejected.protocol"
    assert verdict.unfinished("grads", 1).verdict == "incorrect"
    assert verdict.input_changed("x", 0).verdict == "contract_error"


def dump(rank: int, function: str) -> str:
    """A stack as faulthandler writes it: the collective, then the author's line."""
    above = f'File "/torch/distributed/distributed_c10d.py", line 9 in {function}'
    return f'{above}\nFile "/job/solution.py", line {rank + 5} in solution'


def test_a_rank_that_never_came_is_named_and_the_rule_told() -> None:
    reports = [RankReport(0), RankReport(1), RankReport(2, "done"), RankReport(3)]
    stacks = {rank: dump(rank, "all_reduce") for rank in (0, 1, 3)}

    found = failed("deadline", reports, stacks=stacks)

    assert found.message == (
        "Ranks 0, 1 and 3 did not finish in a call although rank 2 did: rank 0 in all_reduce (line 5); "
        "rank 1 in all_reduce (line 6); rank 3 in all_reduce (line 8). All ranks of a group must call its "
        "collectives, in the same order and with the same sizes."
    )


def test_one_rank_that_waits_is_told_in_the_singular() -> None:
    reports = [RankReport(0, "joined"), *(RankReport(rank, "ready") for rank in (1, 2, 3))]

    found = failed("deadline", reports, phase="import", stacks={0: dump(0, "barrier")})

    assert found.message.startswith(
        "Rank 0 did not finish while the file was imported although ranks 1, 2 and 3 did: rank 0 in barrier"
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 bytes. Error code 12",
         "Rank 0 asked for 4096.0 GiB of memory at once (line 6), more than there is for it."),
        ("Torch not compiled with CUDA enabled",
         "Rank 0 raised RuntimeError (line 6): Torch not compiled with CUDA enabled. Put tensors where the arguments "
         "are (`tensor.device`), or choose a target with cards."),
        ("No module named 'triton'",
         "Rank 0 raised RuntimeError (line 6): No module named 'triton'. Triton does not run on this target: it needs "
         "cards. Write C++ through `torch.utils.cpp_extension.load_inline`, or choose a target with cards."),
        ("trying to initialize the default process group twice!",
         "Rank 0 raised RuntimeError (line 6): trying to initialize the default process group twice."),
    ],
)  # fmt: skip
def test_what_to_do_is_said(message: str, words: str) -> None:
    assert failed("error", [error(0, "RuntimeError", message, line=6)]).message == words


def test_a_crash_comes_before_the_echo_on_the_other_ranks() -> None:
    echo = "[pair.cc:537] Read error [127.0.0.1]:13718: Connection reset by peer. GLHF!"
    reports = [error(0, "RuntimeError", echo, line=9), RankReport(1, "exited", exit_code=-6)]

    found = failed("error", reports)

    assert (found.code, found.rank) == ("runtime_error.sigabrt", 1)
    assert "a collective whose sizes differ" in found.message


def test_an_error_of_its_own_comes_before_a_crash() -> None:
    reports = [error(0, "ValueError", "wrong", line=9), RankReport(1, "exited", exit_code=-6)]

    assert failed("error", reports).code == "runtime_error.exception"


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (2.0, "the value is wrong: expected 1, got 2"),
        ([1.0, 2.0], "1 of 2 elements are wrong; first at [1]: expected 1, got 2"),
    ],
)
def test_a_wrong_value_is_told_with_its_place_where_it_has_one(got: Any, words: str) -> None:
    answer = torch.tensor(got)

    found = check_rank(load_problem("allreduce"), Answer(answer), Answer(torch.ones_like(answer)), 3)

    assert str(found) == f"rank 3, out: {words}; the largest error is 1"
