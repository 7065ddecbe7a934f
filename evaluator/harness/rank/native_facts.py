"""What can be read off a finished build: registers and spills, machine code, imported symbols.

Everything is text cut down to what `evaluator.diagnose` reads, with hashes of the whole. The tools are the toolkit's;
one that a host lacks (`cuobjdump`) leaves its part empty. Nothing here decides a verdict: whoever takes over the
compiler with their source may forge it.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
from typing import Any

KEPT = "/tmp/kept"  # noqa: S108 (the sandbox's own tmpfs)
NVCC_FLAGS = ("-Xptxas=-v", "--keep", f"--keep-dir={KEPT}")
MAX_TEXT = 256 << 10
TOOL_LIMIT_S = 60.0

_RESOURCES = re.compile(r"ptxas info|bytes stack frame")
_PTX = re.compile(r"\.entry\b|multimem\.|cp\.(?:reduce\.)?async\.bulk|\b(?:ld|st)\.")
_PTX_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\S+)")


def _ran(*command: str) -> str:
    tool = shutil.which(command[0])
    if tool is None:
        return ""
    try:
        done = subprocess.run(
            [tool, *command[1:]], capture_output=True, text=True, errors="replace", timeout=TOOL_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def shorter_ptx(text: str) -> str:
    """Entry points with the distinct instructions that tell how data moves (registers left out)."""
    kept: list[str] = []
    seen: set[str] = set()
    for line in _PTX_COMMENT.sub(" ", text).splitlines():
        if not _PTX.search(line):
            continue
        if ".entry" in line:
            seen.clear()
            kept.append(line.strip())
            continue
        words = line.split()
        code = words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
        if code not in seen and not code.startswith(("ld.param", "st.param")):
            seen.add(code)
            kept.append(f"  {line.strip()}")
    return "\n".join(kept)[:MAX_TEXT]


def shorter_sass(text: str) -> str:
    """Functions with the first instruction of each kind."""
    kept: list[str] = []
    seen: set[str] = set()
    for line in text.splitlines():
        if "Function :" in line:
            seen.clear()
            kept.append(line)
        elif (match := _SASS.match(line)) and match[1] not in seen:
            seen.add(match[1])
            kept.append(line)
    return "\n".join(kept)[:MAX_TEXT]


def _digest(paths: list[str]) -> str:
    """One hash over files, by name, without what nvcc writes anew each time (comments in PTX)."""
    whole = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            data = stream.read()
        if path.endswith(".ptx"):
            data = b"\n".join(line for line in data.splitlines() if not line.startswith(b"//"))
        whole.update(os.path.basename(path).encode() + b"\0" + data)
    return whole.hexdigest() if paths else ""


def read(library: str, printed: str) -> dict[str, Any]:
    """Facts of a finished library; `printed` is what its compilers said."""
    ptx = sorted(glob.glob(f"{KEPT}/*.ptx"))
    cubins = sorted(path for path in glob.glob(f"{KEPT}/*.cubin") if not path.endswith("_dlink.cubin"))
    texts = []
    for path in ptx:
        with open(path, encoding="utf-8", errors="replace") as stream:
            texts.append(stream.read())
    return {
        "resources": "\n".join(line for line in printed.splitlines() if _RESOURCES.search(line))[:MAX_TEXT],
        "ptx": shorter_ptx("\n".join(texts)),
        "sass": shorter_sass(_ran("cuobjdump", "-sass", library)) if cubins else "",
        "imports": _ran("nm", "-D", "--undefined-only", library)[:MAX_TEXT],
        "ptx_sha256": _digest(ptx),
        "cubin_sha256": _digest(cubins),
    }
