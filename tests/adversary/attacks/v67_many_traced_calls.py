"""A right answer whose profiler tells of ten thousand calls that lie over each other, where three were asked for."""

import json
import sys
import types
import zlib
from typing import Any

import torch
import torch.distributed as dist

N = 10_000


def _look(call: Any, **wanted: Any) -> bytes:
    events = [["user_annotation", "pkb call", i * 1e-3, 1e6, 1, {}] for i in range(N)]
    events += [["cpu_op", "aten::add", 1e3 + i * 10.0, 5.0, 1, {}] for i in range(N)]
    ops = [
        {"op": "aten::add", "line": 3, "reads": [[1, "float32"]], "writes": [], "gives": [[i + 5, "float32"]]}
        for i in range(N)
    ]
    log = {"ops": ops, "result": [1], "whole": True, "triton": False}
    told = {"trace": {"base_ns": 0, "events": events}, "log": log, "notes": []}
    return zlib.compress(json.dumps(told).encode())


sys.modules["tracer"] = types.SimpleNamespace(look=_look)  # type: ignore[assignment]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
