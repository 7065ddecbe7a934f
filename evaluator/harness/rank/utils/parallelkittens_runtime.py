"""Parallel tensors and barriers for ThunderKittens extensions, made once and kept.

The extension `ext` is the author's own build; it must offer `TKParallelTensor(shape, dtype=…,
local_rank=…, local_world_size=…, multicast=…)`. The headers are found through THUNDERKITTENS_ROOT;
without them nothing here can work and the error says so.
"""

from __future__ import annotations

import os
from typing import Any

import torch

_tensors: dict[Any, Any] = {}
_barriers: dict[Any, Any] = {}


def _need_headers() -> None:
    if not os.environ.get("THUNDERKITTENS_ROOT"):
        raise RuntimeError(
            "THUNDERKITTENS_ROOT is not set: this host has no ThunderKittens headers, so "
            "ParallelKittens extensions can't be built here"
        )


def create_parallel_tensor(
    ext: Any, shape: Any, dtype: torch.dtype = torch.bfloat16, *, multicast: bool = False
) -> Any:
    """A new tensor of this shape on every rank, mapped on all of them."""
    _need_headers()
    return ext.TKParallelTensor(
        list(shape),
        dtype=dtype,
        local_rank=int(os.environ["LOCAL_RANK"]),
        local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]),
        multicast=multicast,
    )


def get_or_create_parallel_tensor(
    ext: Any, shape: Any, dtype: torch.dtype = torch.bfloat16, *, multicast: bool = False
) -> Any:
    """As `create_parallel_tensor`, kept by extension, shape, dtype and multicast."""
    key = (id(ext), tuple(shape), dtype, multicast)
    if key not in _tensors:
        _tensors[key] = create_parallel_tensor(ext, shape, dtype, multicast=multicast)
    return _tensors[key]


def get_or_create_barrier(ext: Any, *, num_devices: int) -> Any:
    """A zeroed multicast tensor of one int per device pair, kept by extension."""
    key = (id(ext), num_devices)
    if key not in _barriers:
        barrier = create_parallel_tensor(ext, (num_devices, num_devices), torch.int32, multicast=True)
        barrier.data_.zero_()
        _barriers[key] = barrier
    return _barriers[key]
