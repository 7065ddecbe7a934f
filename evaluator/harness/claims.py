"""What a rank states about its output: read with suspicion, used for comparison only.

A claim node is {"t": [dtype, shape]}, {"v": plain value}, {"l": [...]}, {"d": {...}} or
{"x": type name} for something that is not allowed in an output.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from evaluator.harness.rank.recipe import shaped, span_bytes
from evaluator.harness.sandbox.logs import clean_text

ALIGN = 64
MAX_NODES = 20000
MAX_DEPTH = 20
MAX_DIMS = 64
MAX_INT = 1 << 62
MAX_WORDS = 400
MAX_SHARED = 100
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
    if not isinstance(claim, dict) or len(claim) != 1:
        raise BadClaim("malformed output claim")
    if budget[0] < 0 or depth > MAX_DEPTH:
        return {"x": "tree that is too large or too deep"}
    ((form, body),) = claim.items()
    if form == "t" and isinstance(body, list) and len(body) == 2:
        return _parse_tensor(*body)
    if form == "v":
        return _parse_value(body)
    if form == "l" and isinstance(body, list):
        return {"l": [_parse(item, budget, depth + 1) for item in body]}
    if form == "d" and isinstance(body, dict):
        return {"d": {words(key): _parse(body[key], budget, depth + 1) for key in sorted(body)}}
    if form == "x" and isinstance(body, str):
        return {"x": words(body, 80)}
    raise BadClaim("malformed output claim")


def _parse_tensor(dtype: Any, shape: Any) -> Any:
    if not isinstance(dtype, str) or not isinstance(shape, list):
        raise BadClaim("malformed tensor claim")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise BadClaim("malformed tensor claim")
    if len(shape) > MAX_DIMS or any(n >= MAX_INT for n in shape):
        return {"x": "tensor that is too large"}
    return {"t": [words(dtype, 32), shape]}


def _parse_value(body: Any) -> Any:
    if isinstance(body, list):
        if not all(type(n) is int and abs(n) < MAX_INT for n in body) or len(body) > MAX_DIMS:
            raise BadClaim("malformed size claim")
        return {"v": body}
    if isinstance(body, str):
        return {"v": words(body)}
    if body is None or isinstance(body, (bool, float)):
        return {"v": body}
    if type(body) is int:
        return {"v": body} if abs(body) < MAX_INT else {"x": "number of more than 62 bits"}
    raise BadClaim("malformed value claim")


def parse_shared(claim: Any, arguments: int) -> list[tuple[str, int]]:
    """Which outputs (path) lie in the memory of which argument (index). Raises BadClaim."""
    if claim is None:
        return []
    if not isinstance(claim, list) or len(claim) > MAX_SHARED:
        raise BadClaim("malformed claim about shared memory")
    found = []
    for pair in claim:
        sound = (
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
        )
        if not sound or not 0 <= pair[1] < arguments:
            raise BadClaim("malformed claim about shared memory")
        found.append((words(pair[0]), pair[1]))
    return found


def words(text: str, limit: int = 200) -> str:
    """A rank's words as text that can be stored and shown: valid UTF-8, no controls, capped."""
    return clean_text(text[:limit].encode("utf-8", "replace"))


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


_ADVICE = {
    "AsyncCollectiveTensor": "is of a collective still under way; wait for it with "
    "`torch.distributed._functional_collectives.wait_tensor`"
}


def difference(got: Any, want: Any, path: str = "", *, any_dtype: bool = False) -> tuple[str, str] | None:
    """The first place where two claims differ: (kind, sentence), else None.

    kind: type, structure, dtype or shape. Plain values are compared with the values, not here. `any_dtype`: where
    one dtype is claimed for another, it need only be one that can be read.
    """
    where = f"output {path}" if path else "the output"
    found = _difference(got, want, path, where, any_dtype)
    return (found[0], words(found[1], MAX_WORDS)) if found else None


def _difference(got: Any, want: Any, path: str, where: str, any_dtype: bool) -> tuple[str, str] | None:
    ((have, mine),), ((need, theirs),) = got.items(), want.items()
    if have == "x":
        return (
            "type",
            f"{where} {_ADVICE.get(mine, f'is a {mine}; return tensors, numbers and lists or dicts of them')}",
        )
    if have != need:
        return "structure", f"{where} is {describe(got)}, expected {describe(want)}"
    if have == "t":
        if mine[1] != theirs[1]:
            return "shape", f"{where} has shape {tuple(mine[1])}, expected {tuple(theirs[1])}"
        if mine[0] != theirs[0] and not (any_dtype and mine[0] in DTYPES):
            return "dtype", f"{where} has dtype {mine[0]}, expected {theirs[0]}"
        return None
    if have not in ("l", "d"):
        return None
    left = dict(mine) if have == "d" else dict(enumerate(mine))
    right = dict(theirs) if have == "d" else dict(enumerate(theirs))
    if list(left) != list(right):
        return "structure", f"{where} has {len(left)} parts, expected {len(right)}"
    for key, item in left.items():
        found = difference(item, right[key], f"{path}.{key}" if path else str(key), any_dtype=any_dtype)
        if found:
            return found
    return None


def tree(claim: Any, data: torch.Tensor) -> Any:
    """The output tree with tensors over a snapshot's bytes; `claim` must be one that we trust."""
    return _tree(claim, data, [0])


def _tree(claim: Any, data: torch.Tensor, used: list[int]) -> Any:
    ((form, body),) = claim.items()
    if form == "t":
        start = used[0]
        used[0] = _layout(claim, start)
        return shaped(data[start : start + span_bytes(body[0], body[1], None)], body[0], body[1], None)
    if form == "l":
        return [_tree(item, data, used) for item in body]
    if form == "d":
        return {key: _tree(item, data, used) for key, item in body.items()}
    return torch.Size(body) if isinstance(body, list) else body
