"""From what happened to a verdict, a stable code and one sentence that says what to do."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace

from evaluator.harness.builds import BuildFailed, source_line
from evaluator.harness.check import Mismatch
from evaluator.harness.rank.compiler_log import first_error
from evaluator.harness.reports import JobFailed, RankReport
from evaluator.harness.sandbox.logs import clean_text, drop_noise


@dataclass
class Verdict:
    """`verdict` as in design section 3; `rank` is where it was seen first."""

    verdict: str
    code: str
    message: str
    rank: int | None = None
    first_line: int | None = None
    log: str = ""


_BUILD = re.compile(
    r"Error building extension|error: command .* failed|Ninja build|CompilationError|"
    r"nvcc fatal|ninja: build stopped|Error compiling objects",
    re.I,
)
_NO_CUDA = re.compile(
    r"no NVIDIA driver|not compiled with CUDA|"
    r"No CUDA runtime|needs a CUDA build|libcudart|CUDA is not available",
    re.I,
)
_NO_TOOLKIT = re.compile(r"CUDA_HOME environment variable is not set")
_NO_TRITON = re.compile(r"No module named 'triton\b|0 active drivers")  # the second where torch brought one
_MEMORY = re.compile(
    r"out of memory|can't allocate memory|Cannot allocate memory|std::bad_alloc|not enough memory", re.I
)
_NO_BACKEND = re.compile(r"THUNDERKITTENS_ROOT")


MEANINGS = {
    "SIGSEGV": " (access to memory that is not there)",
    "SIGBUS": " (bad memory access)",
    "SIGABRT": " (the program gave up by itself, as gloo does in a collective whose sizes differ)",
    "SIGFPE": " (arithmetic fault)",
    "SIGKILL": " (killed)",
}


def correct(*, timed: bool) -> Verdict:
    """All agreed; what was not timed is not claimed."""
    calls = "trials and all timed calls" if timed else "trials"
    return Verdict("correct", "correct", f"All {calls} agree with the expected outputs on every rank.")


def from_mismatch(wrong: Mismatch, where: str) -> Verdict:
    """A wrong answer in trial or call `where`."""
    if wrong.kind == "nonfinite":
        code = "incorrect.nonfinite"
        text = f"Rank {wrong.rank}: {wrong.output} holds NaN or infinity where the expected value is finite"
    elif wrong.kind == "invalid":
        code, text = "incorrect.invalid", f"Rank {wrong.rank}: {wrong.message}"
    else:
        code, text = "incorrect.value", f"Rank {wrong.rank}: {wrong.output}: {wrong.message}"
    return Verdict("incorrect", code, f"{text} ({where}).", wrong.rank)


def from_claim(kind: str, sentence: str, rank: int) -> Verdict:
    """The returned structure is not what the problem asks for."""
    return Verdict("contract_error", f"contract_error.{kind}", f"Rank {rank}: {sentence}.", rank)


def input_changed(name: str, rank: int) -> Verdict:
    return Verdict(
        "contract_error",
        "contract_error.input_modified",
        f"Rank {rank}: the argument {name!r} was changed. Work on a copy; only arguments that the problem "
        "marks inout or scratch may change.",
        rank,
    )


def shared(path: str, argument: str, rank: int) -> Verdict:
    output = f"output {path}" if path else "the output"
    return Verdict(
        "contract_error",
        "contract_error.shared_memory",
        f"Rank {rank}: {output} lies in the memory of the argument {argument!r}. Return a tensor of its own "
        f"(`{argument}.clone()` where the values are the same), so that the caller may use both.",
        rank,
    )


def impossible(seconds: float, floor: float) -> Verdict:
    return Verdict(
        "rejected",
        "rejected.impossible",
        f"Two measurements on fresh starts gave {1e3 * seconds:.4g} ms a call, less than the "
        f"{1e3 * floor:.4g} ms in which the bytes that every correct call must exchange can cross the links.",
    )


def late_write(rank: int) -> Verdict:
    return Verdict(
        "rejected",
        "rejected.late_write",
        f"Rank {rank}: output bytes changed after the call was reported as done. All work must be finished "
        "when `solution` returns.",
        rank,
    )


def background() -> Verdict:
    return Verdict(
        "rejected",
        "rejected.background",
        "The file's kernels went on on the cards after its turn was over, where they slow the reference down. All work "
        "must be finished when `solution` returns; threads may launch nothing between calls.",
    )


def hoarded() -> Verdict:
    return Verdict(
        "rejected",
        "rejected.background",
        "The file left so many unread bytes in its TCP connections that every connection of the machine gets slow, the "
        "reference's too. Read what was sent, or close the connections, before `solution` returns.",
    )


def unfinished(name: str, rank: int) -> Verdict:
    return Verdict(
        "incorrect",
        "incorrect.unfinished",
        f"Rank {rank}: the argument {name!r} still changed after `solution` had returned. Wait for "
        "asynchronous collectives and join threads before returning.",
        rank,
    )


def from_build(failure: BuildFailed, source: str) -> Verdict:
    """A unit that did not compile, with the first error and the author's line where it can be found."""
    message, line = source_line(failure.log, source)
    text = f"Build refused: {failure}"
    if failure.code == "compiler":
        text = f"The extension did not build: {message}" if message else "The extension did not build"
    if failure.code in ("timeout", "memory", "size", "crashed"):
        text = f"The build was ended: {failure}"
    if line:
        text += f" (line {line} of your file)"
    log = drop_noise(clean_text(_first_error_on_top(failure.log).encode()))
    return Verdict("build_error", f"build_error.{failure.code}", text + ".", None, line, log)


def _first_error_on_top(log: str) -> str:
    """The log below its first error and what the compiler quotes there: commands are long, errors are not."""
    lines = log.splitlines()
    if (place := first_error(lines)) is None:
        return log
    return "\n".join([*lines[place[0] : place[0] + 3], "", "The whole log:", "", *lines])


def from_failure(failure: JobFailed) -> Verdict:
    """A job that could not go on."""
    if failure.out_of_memory:
        return Verdict(
            "out_of_memory",
            "out_of_memory.limit",
            "The job exceeded its memory limit and was ended. Hold less memory at once on each rank.",
        )
    if failure.kind == "unstoppable":
        return Verdict(
            "runtime_error",
            "runtime_error.unstoppable",
            "The job's processes could not be stopped after the call: something in it kept running or slept "
            "where the kernel can't reach it. Finish all work, children and threads included, before "
            "`solution` returns.",
        )
    if failure.kind == "protocol":
        return Verdict(
            "rejected",
            "rejected.protocol",
            f"A rank sent data of its own over the judge's channel during {failure.phase} ({failure.note}). "
            "Descriptors that the file did not open are not its own.",
        )
    reported = [report for report in failure.ranks if report.error]
    if reported and not (any(map(_left, failure.ranks)) and all(map(_is_echo, reported))):
        return _from_error(reported, failure)
    if failure.kind == "deadline":
        return _from_deadline(failure)
    return _from_exit(failure)


def _from_error(reported: list[RankReport], failure: JobFailed) -> Verdict:
    report = min(reported, key=_weight)
    error = report.error or {}
    kind, message = str(error.get("type"))[:80], str(error.get("message"))[:2000]
    line = error.get("line") if type(error.get("line")) is int else None
    at = f" (line {line})" if line else ""
    first = message.strip().splitlines()[0][:300] if message.strip() else ""
    text = (
        f"Rank {report.rank} raised {kind}{at}: {first}" if first else f"Rank {report.rank} raised {kind}{at}"
    )
    whole = message + str(error.get("traceback", ""))
    if _NO_BACKEND.search(message):
        return Verdict("build_error", "build_error.backend_unavailable", text, report.rank, line)
    if _NO_TOOLKIT.search(message):
        text = (
            f"{text.rstrip('.')}. CUDA sources are compiled ahead, for targets with cards, and only where the file "
            "builds them while it is imported: call `load_inline` at its top, not in `solution`."
        )
        return Verdict("build_error", "build_error.needs_cuda", text, report.rank, line)
    if kind == "BuildNeedsCuda":
        return Verdict("build_error", "build_error.needs_cuda", text, report.rank, line)
    if _BUILD.search(whole):
        hint = _compiler_line(whole)
        text = f"The extension did not build: {hint}" if hint else text
        return Verdict("build_error", "build_error.compiler", text, report.rank, line)
    if kind == "MemoryError" or _MEMORY.search(message):
        text = _asked_for(message, report.rank, at) or text
        return Verdict("out_of_memory", "out_of_memory.allocation", text, report.rank, line)
    if kind == "AttributeError" and "no callable named" in message:
        return Verdict("contract_error", "contract_error.no_solution", text, report.rank)
    if kind == "TypeError" and error.get("outside") is True and failure.phase != "import":
        sentence = f"`solution` can't take the problem's arguments: {first}"
        return Verdict("contract_error", "contract_error.signature", sentence, report.rank)
    if advice := _without_cards(message):
        text = f"{text.rstrip('.')}. {advice}, or choose a target with cards."
        return Verdict("runtime_error", "runtime_error.needs_cuda", text, report.rank, line)
    code = "runtime_error.import" if failure.phase == "import" else "runtime_error.exception"
    return Verdict("runtime_error", code, text.rstrip(".!") + ".", report.rank, line)


def _without_cards(message: str) -> str:
    """What to do instead of what needs cards; empty where the message speaks of something else."""
    if _NO_TRITON.search(message):
        return (
            "Triton does not run on this target: it needs cards. "
            "Write C++ through `torch.utils.cpp_extension.load_inline`"
        )
    return "Put tensors where the arguments are (`tensor.device`)" if _NO_CUDA.search(message) else ""


def _asked_for(message: str, rank: int, at: str) -> str | None:
    """How much memory was asked for at once, where the message tells."""
    asked = re.search(r"tried to allocate (\d{1,18}) bytes", message)
    if asked is None:
        return None
    return f"Rank {rank} asked for {int(asked[1]) / 2**30:.1f} GiB of memory at once{at}, more than there is for it."


_ECHO = re.compile(
    r"Connection (closed|reset)|peer|Broken pipe|timed out|remote process exit|ncclRemoteError|"
    r"cannot open shared object file",
    re.I,
)


def _weight(report: RankReport) -> tuple[bool, bool, int]:
    """Failed builds before other errors, and last of all ranks that only noticed a peer's trouble."""
    error = report.error or {}
    text = str(error.get("message")) + str(error.get("traceback", ""))
    return not _BUILD.search(text), _is_echo(report), report.rank


def _is_echo(report: RankReport) -> bool:
    """Whether the rank's error only tells that a peer went away."""
    return bool(_ECHO.search(str((report.error or {}).get("message"))))


def _left(report: RankReport) -> bool:
    """Whether the rank's process ended without a word, by a signal or by its own deed."""
    return report.exit_code is not None and report.error is None


def _compiler_line(text: str) -> str:
    """The compiler's first error line, without the path in front."""
    lines = text.splitlines()
    place = first_error(lines)
    return "" if place is None else re.sub(r"^\S*/", "", lines[place[0]].strip())[:300]


def _from_deadline(failure: JobFailed) -> Verdict:
    waiting = [report.rank for report in failure.ranks if report.state in ("waiting", "joined")]
    finished = [report.rank for report in failure.ranks if report.rank not in waiting]
    during = "while the file was imported" if failure.phase == "import" else "in a call"
    places = _places(failure)
    if finished:
        text = f"{_ranks(waiting).capitalize()} did not finish {during} although {_ranks(finished)} did"
        code = "timeout.deadlock"
    elif len(set(places.values())) > 1:
        text, code = f"The ranks wait in different places {during}", "timeout.deadlock"
    else:
        text, code = f"No rank finished {during} before the deadline", "timeout.hang"
    where = "; ".join(f"rank {rank} in {place}" for rank, place in sorted(places.items()))
    text = f"{text}: {where}." if where else f"{text}."
    if code == "timeout.deadlock" and any(not place.startswith("line ") for place in places.values()):
        text += " All ranks of a group must call its collectives, in the same order and with the same sizes."
    return Verdict("timeout", code, text)


def _ranks(numbers: list[int]) -> str:
    """`rank 2`, `ranks 0 and 1`, `ranks 0, 1 and 3`."""
    *most, last = map(str, numbers)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"


def _places(failure: JobFailed) -> dict[int, str]:
    """Per rank the innermost line of the author's file and the collective it waits in."""
    found = {}
    for rank, text in failure.stacks.items():
        # Several threads may be listed; the one that runs the file is what we want.
        frames = re.findall(r'File "([^"]+)", line (\d{1,7}) in (\S+)', text)
        own = next(((line, name) for path, line, name in frames if path.endswith("solution.py")), None)
        waits = [name for path, _, name in frames if "distributed_c10d" in path]
        collective = next((name for name in waits if name not in ("wrapper", "wait")), None)
        if own:
            found[rank] = f"{collective} (line {own[0]})" if collective else f"line {own[0]}"
    return found


def at_line(crash: Verdict, stderr: str) -> Verdict:
    """The end of a rank by a signal, with the line of its file that Python's fault handler wrote to ``stderr``.

    The stream is the rank's own: a file that writes something of the kind there misleads its author alone.
    """
    stacks = re.findall(r"^Current thread 0x.*\n((?: +File .*\n)+)", stderr, re.M)
    own = re.search(r'/solution\.py", line (\d{1,7})\b', stacks[-1]) if stacks else None
    if own is None:
        return crash
    return replace(crash, first_line=int(own[1]), message=f"{crash.message.rstrip('.')} in line {own[1]}.")


def _from_exit(failure: JobFailed) -> Verdict:
    gone = [report for report in failure.ranks if _left(report)]
    for report in gone:
        code = report.exit_code
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            meaning = MEANINGS.get(name, "")
            text = f"Rank {report.rank} was ended by {name}{meaning}."
            return Verdict("runtime_error", f"runtime_error.{name.lower()}", text, report.rank)
    for report in gone:
        text = (
            f"Rank {report.rank} left with exit code {report.exit_code} before the protocol was over. "
            "A file must not end its process."
        )
        return Verdict("runtime_error", "runtime_error.exited_early", text, report.rank)
    text = "A rank went away before the protocol was over."
    return Verdict("runtime_error", "runtime_error.exited_early", text)
