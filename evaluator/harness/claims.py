"""What a rank states about its output: read with suspicion, used for comparison only.

A claim node is {"t": [dtype, shape]}, {"v": plain value}, {"l": [...]}, {"d": {...}} or
{"x": type name} for something that is not allowed in an output.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from evaluator.harness.rank.recipe import tensor_at

ALIGN = 64
MAX_NODES = 20000
DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128 float8_e4m3fn float8_e5m2"
    ).split()
}


class BadClaim(ValueError):
    """The claim is not even well formed: only a tampered shim sends such a thing."""


class NotAllowed(ValueError):
    """The output holds something other than tensors, plain values and containers of them."""


def parse(claim: Any) -> Any:
    """The claim as a checked tree. Raises BadClaim for what the shim never writes."""
    budget = [MAX_NODES]
    return _parse(claim, budget, 0)


def _parse(claim: Any, budget: list[int], depth: int) -> Any:
    budget[0] -= 1
    if budget[0] < 0 or depth > 20 or not isinstance(claim, dict) or len(claim) != 1:
        raise BadClaim("malformed output claim")
    ((form, body),) = claim.items()
    if form == "t" and isinstance(body, list) and len(body) == 2:
        dtype, shape = body
        sound = isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
        if isinstance(dtype, str) and len(dtype) < 32 and sound and len(shape) < 32:
            return {"t": [dtype, shape]}
    elif form == "v" and (body is None or isinstance(body, (bool, int, float, str, list))):
        return {"v": body}
    elif form == "l" and isinstance(body, list):
        return {"l": [_parse(item, budget, depth + 1) for item in body]}
    elif form == "d" and isinstance(body, dict):
        return {"d": {key: _parse(body[key], budget, depth + 1) for key in sorted(body)}}
    elif form == "x" and isinstance(body, str):
        return {"x": body[:80]}
    raise BadClaim("malformed output claim")


def nbytes(claim: Any) -> int:
    """Slot bytes that the claimed tensors take, by the rule that the shim packs by."""
    return _layout(claim, 0)


def _layout(claim: Any, used: int) -> int:
    ((form, body),) = claim.items()
    if form == "t":
        dtype = DTYPES.get(body[0])
        size = math.prod(body[1]) * (dtype.itemsize if dtype else 1)
        return used + (size + ALIGN - 1) // ALIGN * ALIGN
    if form in ("l", "d"):
        for item in body.values() if form == "d" else body:
            used = _layout(item, used)
    return used


def describe(claim: Any) -> str:
    """The claim in words: `bfloat16 (64, 32)`, `[float32 (), …]`."""
    ((form, body),) = claim.items()
    match form:
        case "t":
            return f"{body[0]} {tuple(body[1])}"
        case "l":
            return "[" + ", ".join(describe(item) for item in body) + "]"
        case "d":
            return "{" + ", ".join(f"{key!r}: {describe(item)}" for key, item in body.items()) + "}"
        case "x":
            return f"a {body}"
    return repr(body)


def difference(got: Any, want: Any, path: str = "") -> tuple[str, str] | None:
    """The first place where two claims differ: (kind, sentence), else None.

    kind: type, structure, dtype or shape. Plain values are compared with the values, not here.
    """
    where = f"output {path}" if path else "the output"
    ((have, mine),), ((need, theirs),) = got.items(), want.items()
    if have == "x":
        return "type", f"{where} is a {mine}; return tensors, numbers and lists or dicts of them"
    if have != need:
        return "structure", f"{where} is {describe(got)}, expected {describe(want)}"
    if have == "t":
        if mine[1] != theirs[1]:
            return "shape", f"{where} has shape {tuple(mine[1])}, expected {tuple(theirs[1])}"
        if mine[0] != theirs[0]:
            return "dtype", f"{where} has dtype {mine[0]}, expected {theirs[0]}"
        return None
    if have not in ("l", "d"):
        return None
    left = dict(mine) if have == "d" else dict(enumerate(mine))
    right = dict(theirs) if have == "d" else dict(enumerate(theirs))
    if list(left) != list(right):
        return "structure", f"{where} has {len(left)} parts, expected {len(right)}"
    for key, item in left.items():
        found = difference(item, right[key], f"{path}.{key}" if path else str(key))
        if found:
            return found
    return None


def tree(claim: Any, data: torch.Tensor) -> Any:
    """The output tree with tensors over a snapshot's bytes; `claim` must be one that we trust."""
    buffer: Any = data.numpy()
    return _tree(claim, memoryview(buffer), [0])


def _tree(claim: Any, buffer: memoryview, used: list[int]) -> Any:
    ((form, body),) = claim.items()
    if form == "t":
        start = used[0]
        used[0] = _layout(claim, start)
        return tensor_at(buffer, body[0], body[1], None, start)
    if form == "l":
        return [_tree(item, buffer, used) for item in body]
    if form == "d":
        return {key: _tree(item, buffer, used) for key, item in body.items()}
    return torch.Size(body) if isinstance(body, list) else body
