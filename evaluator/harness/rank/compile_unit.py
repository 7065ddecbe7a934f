"""Compile one recorded unit in a sandbox of its own: the author's C++ or CUDA, none of their Python.

Usage: python -I compile_unit.py FD, with the unit in /job/unit.json. FD gets one line of JSON
({"ok", "message", "facts"}) and, when it worked, the library's bytes. `facts` is what can be read off the build
(`native_facts.py`): it explains a result and decides nothing.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compiler_log
import native_facts

FOLDER = "/tmp/build"  # noqa: S108 (the sandbox's own tmpfs)
STUBS = "/tmp/stubs"  # noqa: S108
LOG = "/tmp/build.log"  # noqa: S108
MAX_LOG, MAX_TOLD = 4 << 20, 60000


def _linker_finds(library: str) -> bool:
    told = subprocess.run(["c++", f"-print-file-name={library}"], capture_output=True, text=True, check=False)
    return os.path.isabs(told.stdout.strip())


def _without_driver(flags: list[str]) -> list[str]:
    """`-lcuda`, where there is no driver with an empty library of its name, in whose place the real one is loaded."""
    folders = [flag[2:] for flag in flags if flag.startswith("-L")]
    if _linker_finds("libcuda.so") or any(os.path.exists(os.path.join(f, "libcuda.so")) for f in folders):
        return ["-lcuda"]
    os.makedirs(STUBS, exist_ok=True)
    subprocess.run(
        ["c++", "-shared", "-Wl,-soname,libcuda.so.1", "-o", f"{STUBS}/libcuda.so", "-x", "c++", os.devnull],
        check=True,
    )
    return [f"-L{STUBS}", "-Wl,--no-as-needed", "-lcuda"]


def _find_toolkit(cpp_extension: Any) -> None:
    """Let a torch without CUDA compile for cards too (a build needs the compiler, not the driver), and wheels link.

    Wheels hold `libcudart.so.13` without the name that the linker looks for.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return
    instead: dict[str, list[str]] = {}
    if cpp_extension.CUDA_HOME is None:
        cpp_extension.CUDA_HOME = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        instead |= {"-lc10_cuda": [], "-ltorch_cuda": []}
    folder = os.path.join(cpp_extension.CUDA_HOME, "lib")
    if not glob.glob(os.path.join(cpp_extension.CUDA_HOME, "lib*", "libcudart.so")):
        instead["-lcudart"] = [f"-l:{os.path.basename(p)}" for p in glob.glob(f"{folder}/libcudart.so.*")[:1]]
    linked = cpp_extension._prepare_ldflags

    def prepare(*args: Any, **kwargs: Any) -> list[str]:
        flags = linked(*args, **kwargs)
        if "-lcuda" in flags:
            instead["-lcuda"] = _without_driver(flags)
        return [new for flag in flags for new in instead.get(flag, [flag])]

    cpp_extension._prepare_ldflags = prepare


def _build(unit: dict[str, Any]) -> None:
    from torch.utils import cpp_extension

    _find_toolkit(cpp_extension)
    # The library is only made here; the ranks load it.
    cpp_extension._import_module_from_library = lambda *args, **kwargs: None
    options = {key: unit[key] or None for key in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")}
    options["extra_include_paths"] = unit["extra_include_paths"] or None
    options["extra_cuda_cflags"] = [*unit["extra_cuda_cflags"], *native_facts.NVCC_FLAGS]
    options["verbose"] = True  # the assembler's report of registers and spills is in what it prints
    os.makedirs(native_facts.KEPT)
    for key in ("with_cuda", "no_implicit_headers", "with_pytorch_error_handling"):
        if key in unit:
            options[key] = unit[key]
    os.makedirs(FOLDER)
    beside = os.path.dirname(FOLDER)
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
        for name in os.listdir("/job"):
            shutil.copy(f"/job/{name}", beside)  # what a source includes lies beside it
        for name, text in unit["sources"].items():
            paths.append(os.path.join(beside, os.path.basename(name)))
            with open(paths[-1], "w", encoding="utf-8") as stream:
                stream.write(text)
        cpp_extension.load(unit["name"], paths, build_directory=FOLDER, **options)


def main() -> None:
    """Build and deliver."""
    out = os.fdopen(int(sys.argv[1]), "wb")
    with open("/job/unit.json", encoding="utf-8") as stream:
        unit = json.load(stream)
    library = os.path.join(FOLDER, unit["name"] + ".so")
    log = os.open(LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    try:
        _build(unit)
        ok, message = os.path.exists(library), "the compiler left no library"
    except BaseException as error:  # noqa: BLE001 (the message is what we want)
        ok, message = False, str(error)
    sys.stdout.flush()
    said: dict[str, Any] = {"ok": ok}
    if ok:
        with open(LOG, encoding="utf-8", errors="replace") as stream:
            said["facts"] = native_facts.read(library, stream.read(MAX_LOG))
    else:
        said["message"] = f"{message[:MAX_TOLD]}\n{compiler_log.cut(LOG, MAX_TOLD)}"
    out.write(json.dumps(said).encode() + b"\n")
    if ok:
        with open(library, "rb") as stream:
            out.write(stream.read())
    out.flush()


if __name__ == "__main__":
    main()
