"""Argument trees to a JSON recipe and slot bytes: the supervisor's half of `rank/recipe.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.harness.rank.recipe import shaped, span_bytes
from problems.leaves import Group, Made

ALIGN = 64


@dataclass
class Packed:
    """A recipe per argument, and (argument index, byte offset in the slot, tensor) for every tensor."""

    recipe: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[tuple[int, int, torch.Tensor]] = field(default_factory=list)
    nbytes: int = 0


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory as a flat uint8 tensor (contiguous tensors only; no copy)."""
    flat = tensor.reshape(-1)
    if flat.numel() == 0:
        return torch.empty(0, dtype=torch.uint8)
    if flat.dtype.is_complex:
        flat = torch.view_as_real(flat).reshape(-1)
    return flat.view(torch.uint8)


def _dense(tensor: torch.Tensor) -> tuple[torch.Tensor, list[int] | None]:
    """A contiguous tensor with the same memory, and the strides to restore (None: contiguous)."""
    plain = tensor.detach()
    if plain.is_contiguous():
        return plain, None
    span = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
    if plain.numel() == 0 or span > 2 * plain.numel():
        return plain.contiguous(), None
    return plain.as_strided((span,), (1,)).contiguous(), list(plain.stride())


class _Packer:
    def __init__(self) -> None:
        self.packed = Packed()
        self.argument = 0

    def tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        memory, strides = _dense(tensor)
        offset = self.packed.nbytes
        self.packed.tensors.append((self.argument, offset, memory))
        size = memory.numel() * memory.element_size()
        self.packed.nbytes = (offset + size + ALIGN - 1) // ALIGN * ALIGN
        dtype = str(tensor.dtype).removeprefix("torch.")
        return {"t": [dtype, list(tensor.shape), strides, offset, tensor.requires_grad]}

    def node(self, leaf: Any) -> dict[str, Any]:
        match leaf:
            case torch.Tensor():
                return self.tensor(leaf)
            case torch.Size():
                return {"m": ["size", {"dims": {"l": [{"v": n} for n in leaf]}}]}
            case None | bool() | int() | float() | str():
                return {"v": leaf}
            case list():
                return {"l": [self.node(item) for item in leaf]}
            case tuple():
                return {"u": [self.node(item) for item in leaf]}
            case dict():
                return {"d": {str(key): self.node(item) for key, item in leaf.items()}}
            case Group(ranks=ranks):
                return {"g": None if ranks is None else list(ranks)}
            case Made(factory=name, leaves=leaves):
                return {"m": [name, {key: self.node(item) for key, item in leaves.items()}]}
        raise TypeError(f"{type(leaf).__name__} cannot be sent to a rank")


def pack(args: list[Any]) -> Packed:
    """Lay out one rank's arguments. Raises TypeError for a leaf that can't be sent."""
    packer = _Packer()
    for index, arg in enumerate(args):
        packer.argument = index
        packer.packed.recipe.append(packer.node(arg))
    return packer.packed


def write(packed: Packed, flat: torch.Tensor) -> None:
    """Copy the packed tensors' bytes into a slot (uint8, on any device)."""
    for _, offset, tensor in packed.tensors:
        source = raw_bytes(tensor)
        flat[offset : offset + source.numel()].copy_(source)


def changed(packed: Packed, flat: torch.Tensor, arguments: frozenset[int]) -> int | None:
    """The first of `arguments` (by index) whose bytes in the slot are no longer those written."""
    for index, offset, tensor in packed.tensors:
        if index in arguments:
            source = raw_bytes(tensor).to(flat.device)
            if not torch.equal(flat[offset : offset + source.numel()], source):
                return index
    return None


def tree_at(node: dict[str, Any], flat: torch.Tensor) -> Any:
    """The tree that a recipe node describes, its tensors copied out of the slot as they are now."""
    ((form, body),) = node.items()
    match form:
        case "t":
            dtype, shape, strides, offset, _ = body
            size = span_bytes(dtype, shape, strides)
            return shaped(flat[offset : offset + size].clone(), dtype, shape, strides)
        case "l" | "u":
            return [tree_at(item, flat) for item in body]
        case "d":
            return {key: tree_at(item, flat) for key, item in body.items()}
        case "m":
            return Made(body[0], {key: tree_at(item, flat) for key, item in body[1].items()})
        case "v":
            return body
    return None
