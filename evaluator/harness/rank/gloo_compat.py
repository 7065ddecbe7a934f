"""Make gloo accept what NCCL accepts, so that one file runs on CPU and on cards.

NCCL takes a stacked output of `all_gather_into_tensor` and any layout in `reduce_scatter_tensor` (any
shape of the right size), lists of unequal sizes in `all_gather` and `all_to_all`, float8 tensors that are
only moved, a batched send to oneself, a coalescing manager over any calls, and a group asked for by the
name "nccl"; gloo takes none of them. The results are those of NCCL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

# Newer torch has new names for two of them and warns about the old ones.
_gather_flat = getattr(c10d, "all_gather_single", c10d.all_gather_into_tensor)
_gather_list = c10d.all_gather
_reduce_scatter = getattr(c10d, "reduce_scatter_single", c10d.reduce_scatter_tensor)
_exchange = c10d.all_to_all_single
_broadcast, _gather, _scatter = c10d.broadcast, c10d.gather, c10d.scatter
_batch, _new_group = c10d.batch_isend_irecv, c10d.new_group
_coalesce = c10d._coalescing_manager
_isend, _irecv = c10d.isend, c10d.irecv


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A float8 tensor seen as bytes: gloo knows no such type, and moving changes no bit."""
    return tensor.view(torch.uint8) if str(tensor.dtype).startswith("torch.float8") else tensor


def _each(tensors: list[torch.Tensor] | None) -> list[torch.Tensor] | None:
    return None if tensors is None else [_bytes(tensor) for tensor in tensors]


def all_gather_into_tensor(
    output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """As torch's, for any output shape with `world size × input` elements."""
    output, source = _bytes(output_tensor), _bytes(input_tensor)
    same_layout = output.is_contiguous() and source.is_contiguous()
    if not same_layout or output.numel() != source.numel() * dist.get_world_size(group):
        return _gather_flat(output, source, group, async_op)
    return _gather_flat(output.view(-1), source.reshape(-1), group, async_op)


def reduce_scatter_tensor(
    output: torch.Tensor,
    input: torch.Tensor,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As torch's, for any shapes with `input = world size × output` elements."""
    same_layout = output.is_contiguous() and input.is_contiguous()
    if not same_layout or input.numel() != output.numel() * dist.get_world_size(group):
        return _reduce_scatter(output, input, op, group, async_op)
    return _reduce_scatter(output.view(-1), input.reshape(-1), op, group, async_op)


def all_gather(
    tensor_list: list[torch.Tensor], tensor: torch.Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """As torch's, also for tensors whose sizes differ between ranks (padded to the largest)."""
    boxes = [_bytes(item) for item in tensor_list]
    source = _bytes(tensor)
    sizes = [item.numel() for item in boxes]
    if len(set(sizes)) <= 1:
        return _gather_list(boxes, source, group, async_op)
    longest = max(sizes)
    padded = source.new_zeros(longest)
    padded[: source.numel()] = source.reshape(-1)
    landed = [torch.empty_like(padded) for _ in sizes]
    _gather_list(landed, padded, group)
    for item, box in zip(boxes, landed, strict=True):
        item.copy_(box[: item.numel()].view(item.shape))
    return _Done(tensor_list) if async_op else None


def all_to_all_single(
    output: torch.Tensor,
    input: torch.Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As torch's, for float8 too."""
    return _exchange(_bytes(output), _bytes(input), output_split_sizes, input_split_sizes, group, async_op)


def all_to_all(
    output_tensor_list: list[torch.Tensor],
    input_tensor_list: list[torch.Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As torch's, also for lists of unequal sizes: always one exchange of flat pieces.

    Sizes may be equal on one rank and unequal on another, so no rank may choose by its own sizes.
    """
    outputs = [_bytes(item) for item in output_tensor_list]
    sent = torch.cat([_bytes(item).reshape(-1) for item in input_tensor_list])
    receive = [item.numel() for item in outputs]
    landed = torch.empty(sum(receive), dtype=sent.dtype, device=sent.device)
    work = _exchange(
        landed, sent, receive, [item.numel() for item in input_tensor_list], group=group, async_op=True
    )
    landing = _Landing(work, outputs, list(torch.split(landed, receive)))
    if async_op:
        return landing
    landing.wait()
    return None


def broadcast(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """As torch's, for float8 too."""
    return _broadcast(_bytes(tensor), *args, **kwargs)


def gather(tensor: torch.Tensor, gather_list: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As torch's, for float8 too."""
    return _gather(_bytes(tensor), _each(gather_list), *args, **kwargs)


def scatter(tensor: torch.Tensor, scatter_list: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As torch's, for float8 too."""
    return _scatter(_bytes(tensor), _each(scatter_list), *args, **kwargs)


def batch_isend_irecv(p2p_op_list: list[Any]) -> list[Any]:
    """As torch's, also where a rank is its own peer: such sends and receives are matched in order."""
    own = [op for op in p2p_op_list if op.group_peer == dist.get_rank(op.group)]
    others = [op for op in p2p_op_list if op.group_peer != dist.get_rank(op.group)]
    sends = [op.tensor for op in own if op.op is _isend]
    receives = [op.tensor for op in own if op.op is _irecv]
    if len(sends) != len(receives):
        raise ValueError(f"{len(sends)} sends to the rank itself, but {len(receives)} receives from it")
    with torch.no_grad():
        for target, source in zip(receives, [tensor.clone() for tensor in sends], strict=True):
            target.copy_(source)
    return (_batch(others) if others else []) + ([_Done(receives)] if own else [])


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As torch's; a group asked for as "nccl" is one of this backend."""
    return _new_group(ranks, timeout, None if backend == "nccl" else backend, *args, **kwargs)


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[Any]:
    """As torch's. With a device, which gloo can't coalesce for, every call inside runs as it comes."""
    if device is None:
        with _coalesce(group, None, async_ops) as manager:
            yield manager
    else:
        yield _Done([])


class _Finished(ABC):
    """What a work handle offers beside `wait`."""

    def synchronize(self) -> None:
        self.wait()

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    @abstractmethod
    def wait(self, timeout: Any = None) -> bool:
        """Return when the exchange is over."""


class _Landing(_Finished):
    """A running exchange; its outputs are filled when somebody waits for it."""

    def __init__(self, work: Any, outputs: list[torch.Tensor], pieces: list[torch.Tensor]) -> None:
        self.work, self.outputs, self.pieces = work, outputs, pieces

    def _land(self) -> list[torch.Tensor]:
        with torch.no_grad():
            for item, piece in zip(self.outputs, self.pieces, strict=True):
                item.copy_(piece.view(item.shape))
        return self.outputs

    def wait(self, timeout: Any = None) -> bool:
        if self.work is not None:
            self.work.wait()
        self._land()
        return True

    def is_completed(self) -> bool:
        return self.work is None or bool(self.work.is_completed())

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self.outputs

    def get_future(self) -> Any:
        """A future of the outputs, which are filled when the exchange is over."""
        return self.work.get_future().then(lambda _: self._land())


class _Done(_Finished):
    """A finished work handle over `tensors`."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self.tensors = tensors

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def result(self) -> list[torch.Tensor]:
        return self.tensors

    def get_future(self) -> Any:
        """A future that is done."""
        future: Any = torch.futures.Future()
        future.set_result(self.tensors)
        return future


def install() -> None:
    """Put these forms in place of torch's, everywhere they are looked up."""
    names = {
        "all_gather_into_tensor": all_gather_into_tensor,
        "all_gather_single": all_gather_into_tensor,
        "_all_gather_base": all_gather_into_tensor,
        "all_gather": all_gather,
        "reduce_scatter_tensor": reduce_scatter_tensor,
        "reduce_scatter_single": reduce_scatter_tensor,
        "_reduce_scatter_base": reduce_scatter_tensor,
        "all_to_all_single": all_to_all_single,
        "all_to_all": all_to_all,
        "broadcast": broadcast,
        "gather": gather,
        "scatter": scatter,
        "batch_isend_irecv": batch_isend_irecv,
        "new_group": new_group,
        "_coalescing_manager": _coalescing_manager,
    }
    modules: tuple[Any, ...] = (dist, c10d)
    for module in modules:
        for name, form in names.items():
            if hasattr(module, name):
                setattr(module, name, form)
