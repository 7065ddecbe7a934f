"""Extension builds seen from the rank: recorded first, compiled elsewhere, then found ready.

`unit_of` turns a call of `load_inline` or `load` into plain data; its hash names the finished
library in the job's folder. What was not recorded is built here and now, before the clock.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

from torch.utils import cpp_extension
from unithash import unit_hash

_load_inline = cpp_extension.load_inline
_load = cpp_extension.load
LATE: list[str] = []
RECORDS = "only_records"
"""Marks a `load_inline` that compiles nothing: what it is asked for need not run here."""
LISTS = ("functions", "extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags", "extra_ldflags")


def _texts(value: Any) -> list[str]:
    if not value:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]


def unit_of(form: str, name: Any, sources: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """One build as JSON data. `form` is inline or files; sources is {name: text} or {kind: [text]}."""
    unit: dict[str, Any] = {"form": form, "name": str(name), "sources": sources}
    for key in (*LISTS, "extra_include_paths"):
        value = options.get(key)
        unit[key] = dict(value) if isinstance(value, dict) else _texts(value)
    for key in ("with_cuda", "no_implicit_headers", "with_pytorch_error_handling", "is_python_module"):
        if options.get(key) is not None:
            unit[key] = bool(options[key])
    return unit


def _inline_unit(
    name: Any, cpp_sources: Any = None, cuda_sources: Any = None, **options: Any
) -> dict[str, Any]:
    return unit_of("inline", name, {"cpp": _texts(cpp_sources), "cuda": _texts(cuda_sources)}, options)


def _files_unit(name: Any, sources: Any, **options: Any) -> dict[str, Any]:
    texts = {}
    for path in _texts(sources):
        base = os.path.basename(path)
        if base in texts:
            raise ValueError(
                f"two sources of extension {str(name)!r} are named {base}: give each file a name of its own"
            )
        with open(path, encoding="utf-8") as stream:
            texts[base] = stream.read()
    return unit_of("files", name, texts, options)


class _Anything:
    """Stands for a module that was recorded, not built: any attribute is a function that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def record(units: list[dict[str, Any]]) -> None:
    """From now on builds are only noted down in `units`."""

    def inline(name: Any, *args: Any, **kwargs: Any) -> Any:
        units.append(_inline_unit(name, *args, **kwargs))
        return _Anything()

    def files(name: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        units.append(_files_unit(name, sources, **kwargs))
        return _Anything()

    setattr(inline, RECORDS, True)
    cpp_extension.load_inline, cpp_extension.load = inline, files


def _ready(folder: str, unit: dict[str, Any]) -> str | None:
    path = os.path.join(folder, unit_hash(unit), unit["name"] + ".so")
    return path if os.path.exists(path) else None


def _import(name: str, path: str, is_python_module: bool = True) -> Any:
    if not is_python_module:
        import torch

        torch.ops.load_library(path)
        return path
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules.setdefault(name, module)
    return module


def use_ready(folder: str) -> None:
    """From now on a build whose library lies in `folder` is only loaded; others are built late."""

    def inline(name: Any, *args: Any, **kwargs: Any) -> Any:
        path = _ready(folder, _inline_unit(name, *args, **kwargs))
        if path:
            return _import(name, path, kwargs.get("is_python_module", True))
        LATE.append(str(name))
        return _load_inline(name, *args, **kwargs)

    def files(name: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        path = _ready(folder, _files_unit(name, sources, **kwargs))
        if path:
            return _import(name, path, kwargs.get("is_python_module", True))
        LATE.append(str(name))
        return _load(name, sources, *args, **kwargs)

    cpp_extension.load_inline, cpp_extension.load = inline, files
