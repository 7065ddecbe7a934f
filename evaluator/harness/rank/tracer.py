"""Looks at one file at work, after everything that counts: a profiler trace and a log of its operators.

Runs inside the sandbox, so all that it tells are claims: they explain a result and decide nothing. The trace comes from
torch's profiler (CUPTI where there are cards) in calls of their own; the log, from one further call under a dispatch
mode, since that would slow the traced ones down.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

MAX_EVENTS = 20000
MAX_OPS = 20000
MAX_HELD = 1 << 30
CALL = "pkb call"
SETTLE = "pkb wait for the device"
KINDS = frozenset(
    {"cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver"}
)
ARGS = ("bytes", "stream", "device", "correlation")
READS = frozenset({"numpy", "tolist", "data_ptr", "__array__", "__dlpack__", "untyped_storage", "storage"})
"""Methods of a tensor through which its values leave where no operator shows it."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The profiler's library greets on standard error at each start: that is no output of the file."""
    kept, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)


def _settle() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def traced(call: Callable[[], Any], calls: int) -> dict[str, Any]:
    """`calls` calls under the profiler: {"base_ns", "events"}, times in µs since `base_ns`."""
    cards = torch.cuda.is_available() and torch.cuda.is_initialized()
    options: dict[str, Any] = {"use_device": "cuda"} if cards else {}
    profiler = torch.autograd.profiler.profile(use_kineto=True, use_cpu=True, **options)
    with _quiet():
        profiler.__enter__()
    try:
        for number in range(calls):
            with torch.autograd.profiler.record_function(f"{CALL} {number}"):
                call()
                with torch.autograd.profiler.record_function(SETTLE):
                    _settle()
    finally:
        with _quiet():
            profiler.__exit__(None, None, None)
    with tempfile.NamedTemporaryFile(suffix=".json") as stream:
        profiler.export_chrome_trace(stream.name)
        with open(stream.name, encoding="utf-8", errors="replace") as text:
            whole = json.load(text)
    return {"base_ns": whole.get("baseTimeNanoseconds", 0), "events": _shorter(whole["traceEvents"])}


def _shorter(events: list[dict[str, Any]]) -> list[list[Any]]:
    """Rows [kind, name, start, duration, thread, arguments] of the longest events, in order of time."""
    kept = [e for e in events if e.get("ph") == "X" and e.get("cat") in KINDS]
    if len(kept) > MAX_EVENTS:
        kept = sorted(kept, key=lambda e: -e["dur"])[:MAX_EVENTS]
    rows = []
    for event in sorted(kept, key=lambda e: e["ts"]):
        more = {key: value for key in ARGS if (value := (event.get("args") or {}).get(key)) is not None}
        row = [event["cat"], str(event["name"])[:200], event["ts"], event["dur"], event.get("tid"), more]
        rows.append(row)
    return rows


def _line() -> int | None:
    """The line of the author's file that is at work, innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("/solution.py"):
            return int(frame.f_lineno)
        frame = frame.f_back
    return None


class _Log:
    """Operators in order with what they read and wrote, by storage; storages are numbered as they appear."""

    def __init__(self) -> None:
        self.ops: list[dict[str, Any]] = []
        self.numbers: dict[int, int] = {}
        self.held: list[Any] = []
        self.bytes = 0
        self.whole = True

    def place(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor's storage. It is kept alive, so that its address means nothing else later."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            return None  # a sparse tensor has none
        key = storage._cdata
        if key not in self.numbers:
            if self.bytes > MAX_HELD:
                self.whole = False
                return None
            self.numbers[key] = len(self.numbers)
            self.held.append(storage)
            self.bytes += storage.nbytes()
        return self.numbers[key]

    def places(self, tree: Any) -> list[list[Any]]:
        """[storage, dtype] of every tensor in a tree."""
        leaves = [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]
        found = [(self.place(leaf), str(leaf.dtype).removeprefix("torch.")) for leaf in leaves]
        return [[number, dtype] for number, dtype in found if number is not None]

    def add(self, **fields: Any) -> None:
        if len(self.ops) < MAX_OPS:
            self.ops.append({**fields, "line": _line()})
        else:
            self.whole = False


class _Operators(TorchDispatchMode):
    def __init__(self, log: _Log) -> None:
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        reads = self.log.places([args, kwargs or {}])
        result = func(*args, **(kwargs or {}))
        written = []
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written += self.log.places(value)
        for argument in func._schema.arguments[len(args) :]:
            if argument.alias_info is not None and argument.alias_info.is_write:
                written += self.log.places((kwargs or {}).get(argument.name))
        self.log.add(op=func._schema.name, reads=reads, writes=written, gives=self.log.places(result))
        return result


class _Reads(TorchFunctionMode):
    def __init__(self, log: _Log) -> None:
        super().__init__()
        self.log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in READS and args and isinstance(args[0], torch.Tensor):
            self.log.add(op="read", reads=self.log.places(args[0]), writes=[], gives=[])
        return func(*args, **(kwargs or {}))


class _Triton:
    """Whether the file at work uses Triton, where torch's own profiler loads it too."""

    _TELLS = "triton.runtime"

    def __init__(self) -> None:
        self.ours = False

    def used(self) -> bool:
        """Ask before anything of ours is done."""
        return self._TELLS in sys.modules and not self.ours

    def after_ours(self, used: bool) -> None:
        """Whoever did not use it before we looked did not load it since: the file's calls ran before."""
        self.ours |= not used and self._TELLS in sys.modules


TRITON = _Triton()


def logged(call: Callable[[], Any]) -> dict[str, Any]:
    """One call under the modes: {"ops", "result" (storages), "whole"}."""
    log = _Log()
    with _Reads(log), _Operators(log):
        result = call()
    place = {number for number, _ in log.places(result)}
    return {
        "ops": log.ops,
        "result": sorted(place),
        "whole": log.whole,
    }


def look(call: Callable[[], Any], *, warm: int, calls: int, detail: bool) -> bytes:
    """Everything of one rank, compressed. What cannot be had is left out, and `notes` says why."""
    found: dict[str, Any] = {"notes": []}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["device_peak"] = torch.cuda.max_memory_allocated()
    for _ in range(warm):
        call()
    _settle()
    triton = TRITON.used()
    try:
        if calls:
            found["trace"] = traced(call, calls)
    except (RuntimeError, OSError, ValueError, KeyError, TypeError) as error:
        found["notes"].append(f"no trace: {type(error).__name__}: {error}"[:300])
    if detail:
        try:
            found["log"] = logged(call) | {"triton": triton}
        except Exception as error:  # noqa: BLE001 (code that no mode can follow is still right)
            found["notes"].append(f"no operator log: {type(error).__name__}: {error}"[:300])
    TRITON.after_ours(triton)
    return zlib.compress(json.dumps(found).encode())
