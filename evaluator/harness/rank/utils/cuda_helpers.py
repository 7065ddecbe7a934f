"""`compile_cuda_extension`: build one CUDA source that carries its own pybind module block."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils import cpp_extension


class BuildNeedsCuda(RuntimeError):
    """This target has no CUDA device, so a CUDA source can't be built or run here."""


def compile_cuda_extension(
    name: str,
    cuda_src: str,
    extra_cuda_cflags: list[str] | None = None,
    extra_include_paths: list[str] | None = None,
    extra_ldflags: list[str] | None = None,
) -> Any:
    """The loaded module of a CUDA source with `PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)` in it.

    Built with -O3 for TORCH_CUDA_ARCH_LIST (9.0 when unset). Ranks of one job share one build.
    """
    load_inline = cpp_extension.load_inline
    if not torch.cuda.is_available() and not getattr(load_inline, "only_records", False):
        raise BuildNeedsCuda(f"extension {name!r} needs a CUDA build; this target runs on CPU")
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    return load_inline(
        name=name,
        cpp_sources="",
        cuda_sources=cuda_src,
        extra_cuda_cflags=["-O3", *(extra_cuda_cflags or [])],
        extra_include_paths=extra_include_paths or [],
        extra_ldflags=extra_ldflags or [],
        with_cuda=True,
        verbose=False,
    )
