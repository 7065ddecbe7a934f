"""Rebuild a call's arguments on the rank from a JSON recipe and the bytes of a slot.

Runs beside the submission: it trusts nobody and nobody trusts it. Node forms (see
`evaluator.harness.encode`, which writes them):

{"t": [dtype, shape, strides or null, offset, requires_grad]}   dense tensor in the slot
{"v": value}  {"l": [nodes]}  {"u": [nodes]}  {"d": {key: node}}
{"g": [ranks] or null}                                          process group
{"m": [factory, {name: node}]}                                  made by a factory
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch


def linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.nn.Linear:
    """An `nn.Linear` that holds exactly these tensors as parameters."""
    module = torch.nn.Linear(
        weight.shape[1], weight.shape[0], bias=bias is not None, device="meta", dtype=weight.dtype
    )
    module.weight = torch.nn.Parameter(weight.detach(), requires_grad=weight.is_floating_point())
    if bias is not None:
        module.bias = torch.nn.Parameter(bias.detach())
    return module


def sparse_coo(
    indices: torch.Tensor, values: torch.Tensor, size: list[int], coalesced: bool = False
) -> torch.Tensor:
    """A sparse COO tensor; `size` is a list of ints."""
    return torch.sparse_coo_tensor(
        indices, values, tuple(size), is_coalesced=coalesced, check_invariants=False
    )


BUILT_IN: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "size": lambda dims: torch.Size(dims),
    "sparse_coo": sparse_coo,
    "dtype": lambda name: getattr(torch, name),
}


def tensor_at(
    buffer: memoryview, dtype: str, shape: list[int], strides: list[int] | None, offset: int
) -> torch.Tensor:
    """A tensor that lies in `buffer` (a writable memoryview) at byte `offset`; strides in elements."""
    kind = getattr(torch, dtype)
    if strides is None:
        count = 1
        for dim in shape:
            count *= dim
        if count == 0:
            return torch.empty(shape, dtype=kind)
        return torch.frombuffer(buffer, dtype=kind, count=count, offset=offset).view(shape)
    span = 1 + sum((dim - 1) * step for dim, step in zip(shape, strides, strict=True))
    flat = torch.frombuffer(buffer, dtype=kind, count=span, offset=offset)
    return flat.as_strided(shape, strides)


def shaped(flat: torch.Tensor, dtype: str, shape: list[int], strides: list[int] | None) -> torch.Tensor:
    """The tensor whose memory is `flat` (uint8, just as long as it takes), on whatever device that lies."""
    typed = flat.view(getattr(torch, dtype))
    return typed.view(shape) if strides is None else typed.as_strided(shape, strides)


def span_bytes(dtype: str, shape: list[int], strides: list[int] | None) -> int:
    """Bytes from a tensor's first element to behind its last."""
    count = 1
    if strides is None:
        for dim in shape:
            count *= dim
    else:
        count += sum((dim - 1) * step for dim, step in zip(shape, strides, strict=True))
    kind: torch.dtype = getattr(torch, dtype)
    return count * kind.itemsize


def leaves(node: dict[str, Any]) -> list[tuple[str, list[int], list[int] | None, int]]:
    """(dtype, shape, strides, offset) of every tensor of a recipe node."""
    ((form, body),) = node.items()
    if form == "t":
        return [tuple(body[:4])]
    if form in "lu":
        return [leaf for item in body for leaf in leaves(item)]
    if form in "dm":
        inner = body if form == "d" else body[1]
        return [leaf for item in inner.values() for leaf in leaves(item)]
    return []


def storage_of(tensor: torch.Tensor) -> int:
    """Where the memory begins that a strided tensor is a view of."""
    return tensor.untyped_storage().data_ptr()


Reader = Callable[[str, list[int], list[int] | None, int], torch.Tensor]
"""From (dtype, shape, strides, byte offset) to the tensor that lies there."""


def reader(buffer: memoryview) -> Reader:
    """Reads tensors that lie in host memory."""
    return partial(tensor_at, buffer)


class Decoder:
    """Decodes recipes over one slot, with the groups made at start."""

    def __init__(
        self,
        at: Reader,
        groups: dict[Any, Any],
        factories: Any = None,
        place: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self.at = at
        self.groups = groups
        self.factories = factories
        self.place = place
        self.argument = 0
        self.origins: dict[int, int] = {}
        """Address of a decoded tensor's storage -> the argument that it belongs to."""

    def arguments(self, recipe: list[dict[str, Any]]) -> list[Any]:
        """All arguments of one call."""
        self.origins.clear()
        found = []
        for self.argument, node in enumerate(recipe):
            found.append(self.decode(node))
        return found

    def decode(self, node: dict[str, Any]) -> Any:
        """One argument tree; containers and made objects are new at every call."""
        ((form, body),) = node.items()
        if form == "t":
            dtype, shape, strides, offset, grad = body
            tensor = self.at(dtype, shape, strides, offset)
            if self.place is not None:
                tensor = self.place(tensor)
            if tensor.numel():
                self.origins[storage_of(tensor)] = self.argument
            return tensor.requires_grad_(True) if grad else tensor
        if form == "v":
            return body
        if form == "l":
            return [self.decode(item) for item in body]
        if form == "u":
            return tuple(self.decode(item) for item in body)
        if form == "d":
            return {key: self.decode(item) for key, item in body.items()}
        if form == "g":
            return self.groups[None if body is None else tuple(body)]
        if form == "m":
            name, leaves = body
            make = BUILT_IN.get(name) or getattr(self.factories, name)
            return make(**{key: self.decode(item) for key, item in leaves.items()})
        raise ValueError(f"unknown recipe form {form!r}")

    def replaced(
        self, node: dict[str, Any], leaf: Any, found: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        """Add (place in the slot, copy of the new value) for every tensor that is no longer the decoded one."""
        ((form, body),) = node.items()
        if form == "t" and isinstance(leaf, torch.Tensor):
            slot = self.at(*body[:4])
            same = leaf.device == slot.device and leaf.data_ptr() == slot.data_ptr()
            if not same and leaf.dtype == slot.dtype and leaf.shape == slot.shape:
                found.append((slot, leaf.detach().clone()))
        elif form in "lu" and isinstance(leaf, (list, tuple)) and len(leaf) == len(body):
            for inner, item in zip(body, leaf, strict=True):
                self.replaced(inner, item, found)
        elif form == "d" and isinstance(leaf, dict):
            for key, inner in body.items():
                self.replaced(inner, leaf.get(key), found)
