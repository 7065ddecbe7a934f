"""Compile one recorded unit in a sandbox of its own: the author's C++ or CUDA, none of their Python.

Usage: python -I compile_unit.py FD, with the unit in /job/unit.json. FD gets one line of JSON
({"ok", "message"}) and, when it worked, the library's bytes.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

FOLDER = "/tmp/build"  # noqa: S108 (the sandbox's own tmpfs)


def _build(unit: dict[str, Any]) -> None:
    from torch.utils import cpp_extension

    # The library is only made here; the ranks load it.
    cpp_extension._import_module_from_library = lambda *args, **kwargs: None
    options = {key: unit[key] or None for key in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")}
    options["extra_include_paths"] = unit["extra_include_paths"] or None
    for key in ("with_cuda", "no_implicit_headers", "with_pytorch_error_handling"):
        if key in unit:
            options[key] = unit[key]
    os.makedirs(FOLDER)
    if unit["form"] == "inline":
        if unit["functions"]:
            options["functions"] = unit["functions"]
        cpp_extension.load_inline(
            unit["name"],
            unit["sources"]["cpp"] or "",
            unit["sources"]["cuda"] or None,
            build_directory=FOLDER,
            **options,
        )
    else:
        for key in ("no_implicit_headers", "with_pytorch_error_handling"):
            options.pop(key, None)
        paths = []
        for name, text in unit["sources"].items():
            paths.append(os.path.join(os.path.dirname(FOLDER), os.path.basename(name)))
            with open(paths[-1], "w", encoding="utf-8") as stream:
                stream.write(text)
        cpp_extension.load(unit["name"], paths, build_directory=FOLDER, **options)


def main() -> None:
    """Build and deliver."""
    out = os.fdopen(int(sys.argv[1]), "wb")
    with open("/job/unit.json", encoding="utf-8") as stream:
        unit = json.load(stream)
    library = os.path.join(FOLDER, unit["name"] + ".so")
    try:
        _build(unit)
        ok, message = os.path.exists(library), "the compiler left no library"
    except BaseException as error:  # noqa: BLE001 (the message is what we want)
        ok, message = False, str(error)
    out.write(json.dumps({"ok": ok, "message": "" if ok else message[-60000:]}).encode() + b"\n")
    if ok:
        with open(library, "rb") as stream:
            out.write(stream.read())
    out.flush()


if __name__ == "__main__":
    main()
