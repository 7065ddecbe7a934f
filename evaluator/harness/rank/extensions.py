"""Extension builds seen from the rank: recorded first, compiled elsewhere, then found ready.

`unit_of` turns a call of `load_inline` or `load` into plain data; its hash names the finished
library in the job's folder. What was not recorded is built here and now, before the clock.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import os
import sys
from typing import Any

from torch.utils import cpp_extension
from unithash import KERNEL_ENDINGS, beside_hash, unit_hash

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


def unit_of(form: str, sources: dict[str, Any], options: dict[str, Any], folder: str) -> dict[str, Any]:
    """One build as JSON data. `form` is inline or files; sources is {name: text} or {kind: [text]}."""
    name = options["name"]
    unit: dict[str, Any] = {"form": form, "name": str(name), "sources": sources}
    for key in (*LISTS, "extra_include_paths"):
        value = options.get(key)
        unit[key] = dict(value) if isinstance(value, dict) else _texts(value)
    if beside := beside_hash(_beside(folder)):
        unit["beside"] = beside
    for key in ("with_cuda", "no_implicit_headers", "with_pytorch_error_handling", "is_python_module"):
        if options.get(key) is not None:
            unit[key] = bool(options[key])
    return unit


def _beside(folder: str) -> dict[str, bytes]:
    """What a source may include of the bundle: another header is another library."""
    found = {}
    for name in os.listdir(folder):
        if name.endswith(KERNEL_ENDINGS):
            with open(os.path.join(folder, name), "rb") as stream:
                found[name] = stream.read()
    return found


def inline_unit(folder: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The build that a call of `load_inline` asks for; the bundle lies in `folder`."""
    asked = inspect.signature(_load_inline).bind(*args, **kwargs).arguments
    sources = {kind: _texts(asked.get(f"{kind}_sources")) for kind in ("cpp", "cuda")}
    return unit_of("inline", sources, asked, folder)


def files_unit(folder: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The build that a call of `load` asks for. ValueError where two sources have one name."""
    asked = inspect.signature(_load).bind(*args, **kwargs).arguments
    name, texts = asked["name"], {}
    for path in _texts(asked["sources"]):
        base = os.path.basename(path)
        if base in texts:
            raise ValueError(
                f"two sources of extension {str(name)!r} are named {base}: give each file a name of its own"
            )
        with open(path, encoding="utf-8") as stream:
            texts[base] = stream.read()
    return unit_of("files", texts, asked, folder)


class _Anything:
    """Stands for a module that was recorded, not built: any attribute is a function that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def record(units: list[dict[str, Any]], folder: str) -> None:
    """From now on builds are only noted down in `units`; the file's bundle lies in `folder`."""

    def inline(*args: Any, **kwargs: Any) -> Any:
        units.append(inline_unit(folder, *args, **kwargs))
        return _Anything()

    def files(*args: Any, **kwargs: Any) -> Any:
        units.append(files_unit(folder, *args, **kwargs))
        return _Anything()

    setattr(inline, RECORDS, True)
    cpp_extension.load_inline, cpp_extension.load = inline, files


def _ready(folder: str, unit: dict[str, Any]) -> str | None:
    path = os.path.join(folder, "ext", unit_hash(unit), unit["name"] + ".so")
    return path if os.path.exists(path) else None


def _import(unit: dict[str, Any], path: str) -> Any:
    name = unit["name"]
    if not unit.get("is_python_module", True):
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
    """From now on a build whose library lies in `folder`/ext is only loaded; others are built late."""

    def inline(*args: Any, **kwargs: Any) -> Any:
        unit = inline_unit(folder, *args, **kwargs)
        if path := _ready(folder, unit):
            return _import(unit, path)
        LATE.append(unit["name"])
        return _load_inline(*args, **kwargs)

    def files(*args: Any, **kwargs: Any) -> Any:
        unit = files_unit(folder, *args, **kwargs)
        if path := _ready(folder, unit):
            return _import(unit, path)
        LATE.append(unit["name"])
        return _load(*args, **kwargs)

    cpp_extension.load_inline, cpp_extension.load = inline, files
