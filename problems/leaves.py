"""What a problem's arguments are made of, beside tensors and plain Python values.

`inputs.py` of a problem returns, for every rank, a list of positional arguments. Each argument is a
tree of lists, tuples and dicts whose leaves are

* a dense `torch.Tensor` (any strides),
* `None`, `bool`, `int`, `float`, `str`,
* a `Group`: a process group, named by its ranks,
* a `Made`: an object that a named factory builds on the rank from other leaves (a module, a
  `torch.Size`, a sparse tensor, a dtype).

Nothing else can be sent to a rank, so a rank never unpickles anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Group:
    """A process group, identified by its global ranks; `None` is the default (WORLD) group."""

    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Made:
    """An object built on the rank by `factory(**leaves)`.

    Built in: `linear` (weight, bias), `size` (dims), `sparse_coo` (indices, values, size,
    coalesced), `dtype` (name). Any other name is a function of the problem's `factories.py`.
    """

    factory: str
    leaves: dict[str, Any] = field(default_factory=dict)


@dataclass
class Answer:
    """What one rank must end with: the returned tree, and the `inout` arguments after the call."""

    output: Any
    inout: dict[str, Any] = field(default_factory=dict)


def walk(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf) in a fixed order: sequence order, dict keys sorted, parts joined by dots."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from walk(tree[key], f"{path}.{key}" if path else str(key))
    elif isinstance(tree, (list, tuple)) and not isinstance(tree, torch.Size):
        for index, item in enumerate(tree):
            yield from walk(item, f"{path}.{index}" if path else str(index))
    elif isinstance(tree, Made):
        for key in sorted(tree.leaves):
            yield from walk(tree.leaves[key], f"{path}.{key}" if path else str(key))
    else:
        yield path, tree


def tensors(tree: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensor leaves of a tree with their paths."""
    return [(path, leaf) for path, leaf in walk(tree) if isinstance(leaf, torch.Tensor)]


def map_tensors(tree: Any, fn: Callable[[torch.Tensor], Any]) -> Any:
    """The same tree with `fn` applied to every tensor leaf (containers are new objects)."""
    if isinstance(tree, torch.Tensor):
        return fn(tree)
    if isinstance(tree, dict):
        return {key: map_tensors(value, fn) for key, value in tree.items()}
    if isinstance(tree, torch.Size):
        return tree
    if isinstance(tree, tuple):
        return tuple(map_tensors(item, fn) for item in tree)
    if isinstance(tree, list):
        return [map_tensors(item, fn) for item in tree]
    if isinstance(tree, Made):
        return Made(tree.factory, {k: map_tensors(v, fn) for k, v in tree.leaves.items()})
    return tree
