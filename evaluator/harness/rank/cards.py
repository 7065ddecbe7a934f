"""Card memory shared between the supervisor and a rank, and flags by which their streams wait for each other.

Plain calls of the CUDA driver, since torch has none of them: memory that travels as a file descriptor, and stream
operations that wait for or write 32-bit words in it. Used on both sides; nothing here is secret or decides anything.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

import torch

GRAIN = 2 << 20
"""Shared memory comes in multiples of this many bytes."""
GO, DONE = 0, 64
"""Offsets of the gate's two words: inputs are in place, outputs are there."""
_DEVICE, _PINNED, _DESCRIPTOR, _READ_WRITE = 1, 1, 1, 3
_AT_LEAST = 0


class CardError(RuntimeError):
    """The driver refused a call."""


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Wanted(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


@cache
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    size, word, pointer = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p
    number = ctypes.c_uint
    for name, arguments in {
        "cuMemCreate": [pointer, size, pointer, word],
        "cuMemExportToShareableHandle": [pointer, word, ctypes.c_int, word],
        "cuMemImportFromShareableHandle": [pointer, pointer, ctypes.c_int],
        "cuMemAddressReserve": [pointer, size, size, word, word],
        "cuMemMap": [word, size, size, word, word],
        "cuMemSetAccess": [word, size, pointer, size],
        "cuMemUnmap": [word, size],
        "cuMemAddressFree": [word, size],
        "cuMemRelease": [word],
        "cuStreamWaitValue32_v2": [pointer, word, ctypes.c_uint32, number],
        "cuStreamWriteValue32_v2": [pointer, word, ctypes.c_uint32, number],
        "cuGetErrorName": [ctypes.c_int, pointer],
    }.items():
        getattr(driver, name).argtypes = arguments
    return driver


def _call(name: str, *arguments: Any) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorName(code, ctypes.byref(text))
        raise CardError(f"{name}: {(text.value or b'error').decode()} ({code})")


class _Raw:
    """Bytes at an address, in the form that torch takes without a copy."""

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def ready(device: int) -> None:
    """Make the card's context current on this thread."""
    torch.cuda.set_device(device)
    torch.zeros(1, device=f"cuda:{device}")


class Region:
    """At least `nbytes` of one card's memory, mapped here. Raises CardError."""

    def __init__(self, device: int, nbytes: int, handle: int) -> None:
        self.device = device
        self.nbytes = (max(nbytes, 1) + GRAIN - 1) // GRAIN * GRAIN
        self._handle = handle
        address = ctypes.c_uint64()
        _call("cuMemAddressReserve", ctypes.byref(address), self.nbytes, 0, 0, 0)
        self.address = address.value
        _call("cuMemMap", self.address, self.nbytes, 0, handle, 0)
        access = _Access(_Location(_DEVICE, device), _READ_WRITE)
        _call("cuMemSetAccess", self.address, self.nbytes, ctypes.byref(access), 1)

    @classmethod
    def create(cls, device: int, nbytes: int) -> Region:
        """New memory on a card whose context is current."""
        wanted = _Wanted(_PINNED, _DESCRIPTOR, _Location(_DEVICE, device))
        handle = ctypes.c_uint64()
        whole = (max(nbytes, 1) + GRAIN - 1) // GRAIN * GRAIN
        _call("cuMemCreate", ctypes.byref(handle), whole, ctypes.byref(wanted), 0)
        return cls(device, nbytes, handle.value)

    @classmethod
    def take(cls, descriptor: int, device: int, nbytes: int) -> Region:
        """The memory behind a descriptor that another process exported; the descriptor is closed."""
        handle = ctypes.c_uint64()
        try:
            _call("cuMemImportFromShareableHandle", ctypes.byref(handle), descriptor, _DESCRIPTOR)
        finally:
            os.close(descriptor)
        return cls(device, nbytes, handle.value)

    def export(self) -> int:
        """A descriptor for another process; the caller closes it."""
        descriptor = ctypes.c_int()
        _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), self._handle, _DESCRIPTOR, 0)
        return descriptor.value

    def bytes(self, offset: int, nbytes: int) -> torch.Tensor:
        """`nbytes` from `offset` on as uint8, with a storage of its own."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=f"cuda:{self.device}")
        raw = _Raw(self.address + offset, nbytes, self)
        return torch.as_tensor(raw, device=f"cuda:{self.device}")

    def close(self) -> None:
        """Unmap and give the memory back. Nothing may use its tensors any more."""
        if self.address:
            _call("cuMemUnmap", self.address, self.nbytes)
            _call("cuMemAddressFree", self.address, self.nbytes)
            _call("cuMemRelease", self._handle)
            self.address = 0


def wait_for(stream: int, address: int, value: int) -> None:
    """The stream goes on once the 32-bit word at `address` is at least `value` (of numbers that wrap around)."""
    _call("cuStreamWaitValue32_v2", stream, address, value, _AT_LEAST)


def write_word(stream: int, address: int, value: int) -> None:
    """The stream writes `value` to `address` after what was enqueued before, memory included."""
    _call("cuStreamWriteValue32_v2", stream, address, value, 0)
