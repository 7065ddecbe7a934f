"""Collectives that never communicate: every rank pretends that its own data came from everywhere.

The mutation gate runs a reference under these; a problem on which the answer still passes would
reward a solution that skips the communication.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist


class _Done:
    """A finished work handle."""

    def wait(self, timeout: object = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def _fill(out: torch.Tensor, source: torch.Tensor) -> None:
    """Repeat `source` until `out` is full."""
    flat, data = out.view(-1), source.reshape(-1)
    if data.numel() == 0 or flat.numel() == 0:
        return
    repeats = -(-flat.numel() // data.numel())
    flat.copy_(data.repeat(repeats)[: flat.numel()].to(flat.dtype))


def _index(group: Any) -> int:
    return dist.get_rank(group)


def _nothing(*args: Any, **kwargs: Any) -> _Done:
    return _Done()


def _gather_tensor(output: torch.Tensor, source: torch.Tensor, *a: Any, **k: Any) -> _Done:
    _fill(output, source)
    return _Done()


def _gather_list(outputs: list[torch.Tensor], source: torch.Tensor, *a: Any, **k: Any) -> _Done:
    for item in outputs:
        _fill(item, source)
    return _Done()


def _gather(source: torch.Tensor, gather_list: Any = None, *a: Any, **k: Any) -> _Done:
    return _gather_list(gather_list or [], source)


def _scatter_tensor(
    output: torch.Tensor, source: torch.Tensor, op: Any = None, group: Any = None, *a: Any, **k: Any
) -> _Done:
    index = _index(group)
    start = index * output.numel()
    output.view(-1).copy_(source.reshape(-1)[start : start + output.numel()])
    return _Done()


def _scatter_list(
    output: torch.Tensor, sources: list[torch.Tensor], op: Any = None, group: Any = None, *a: Any, **k: Any
) -> _Done:
    output.copy_(sources[_index(group)])
    return _Done()


def _scatter(
    output: torch.Tensor, sources: Any = None, src: Any = None, group: Any = None, *a: Any, **k: Any
) -> _Done:
    if sources:
        output.copy_(sources[_index(group)])
    return _Done()


def _exchange(output: torch.Tensor, source: torch.Tensor, *a: Any, **k: Any) -> _Done:
    _fill(output, source)
    return _Done()


def _exchange_list(outputs: list[torch.Tensor], sources: list[torch.Tensor], *a: Any, **k: Any) -> _Done:
    for item, source in zip(outputs, sources, strict=True):
        _fill(item, source)
    return _Done()


def _objects(outputs: list[Any], item: Any, *a: Any, **k: Any) -> None:
    outputs[:] = [item] * len(outputs)


def _isend(*args: Any, **kwargs: Any) -> _Done:
    return _Done()


def _irecv(*args: Any, **kwargs: Any) -> _Done:
    return _Done()


def _batch(ops: list[Any]) -> list[_Done]:
    """Every receive gets what this rank sends in the same batch, in order."""
    sent = [item.tensor for item in ops if item.op is _isend]
    received = [item.tensor for item in ops if item.op is not _isend]
    for index, tensor in enumerate(received):
        if sent:
            _fill(tensor, sent[index % len(sent)])
    return [_Done() for _ in ops]


_LOCAL = {
    "all_reduce": _nothing,
    "reduce": _nothing,
    "broadcast": _nothing,
    "barrier": _nothing,
    "send": _nothing,
    "recv": _nothing,
    "isend": _isend,
    "irecv": _irecv,
    "all_gather": _gather_list,
    "all_gather_into_tensor": _gather_tensor,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter_tensor": _scatter_tensor,
    "reduce_scatter": _scatter_list,
    "all_to_all_single": _exchange,
    "all_to_all": _exchange_list,
    "all_gather_object": _objects,
    "batch_isend_irecv": _batch,
}


@contextmanager
def no_communication() -> Iterator[None]:
    """Inside, `torch.distributed`'s collectives only copy local data."""
    from torch.distributed import distributed_c10d

    saved = {(module, name): getattr(module, name) for module in (dist, distributed_c10d) for name in _LOCAL}
    try:
        for module, name in saved:
            setattr(module, name, _LOCAL[name])
        yield
    finally:
        for (module, name), function in saved.items():
            setattr(module, name, function)
