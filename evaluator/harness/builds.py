"""Builds apart from runs: record, check, compile in a fresh sandbox, keep by content.

(1) The file is imported once where builds are only recorded, and what it asked for is remembered; (2) flags are checked
and the key is computed here; (3) each unit is compiled in a sandbox of its own, and only the supervisor moves the
result into the cache. Ranks get it read-only: one compile for all ranks (design section 5, Builds).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from evaluator.diagnose.native_facts import NativeFacts
from evaluator.harness.beside import Beside
from evaluator.harness.errors import Stopped
from evaluator.harness.rank.compiler_log import first_error
from evaluator.harness.rank.unithash import KERNEL_ENDINGS, beside_hash, unit_hash
from evaluator.harness.sandbox import Sandbox, SandboxSpec, inside, python_inside, wheel_toolkits
from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.harness.warm import RANK_CODE, base_env
from problems.registry import Target

MAX_LIBRARY = 64 << 20
MAX_WORDS = 8 << 20
"""Bytes of what the build sandbox says beside a library: as JSON they take up to twenty times as much here."""
MAX_CACHE = 2 << 30
LEAST_KEPT = 256 << 10
"""Bytes that a kept file counts for at least: the cap is one on their number, too, for all are looked at."""
MAX_UNITS = 8
UNITS = ".units"
"""Ends the names of what files asked for, beside the libraries."""
WHEELS = tuple(str(folder / "bin") for folder in wheel_toolkits())
BUILD_PATH = ("/usr/local/cuda/bin", "/usr/bin", "/bin", *WHEELS)
HEADERS = (3, 1, 0)
"""Lines that `load_inline` puts above a source: three for CUDA, one for C++, none when asked."""
FACTS_REVISION = 3
"""Raised when what is read off a build changes, since it is kept beside the library."""
_LISTS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
_SWITCHES = ("with_cuda", "no_implicit_headers", "with_pytorch_error_handling", "is_python_module")
_FIELDS = frozenset(
    {"form", "name", "sources", "beside", "functions", "extra_sycl_cflags", *_LISTS, *_SWITCHES}
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_SOURCE = re.compile(r"[\w+-][\w.+-]*", re.ASCII)
_INCLUDE = re.compile(r"(?:/usr/|/job|/opt/pkb/venv/)[\w./+-]*", re.ASCII)
_HOST_FLAG = (
    r"(?:-O[0-3sg]|-Ofast|-std=[a-z+0-9]+|-[DU][A-Za-z_]\w*(?:=[\w.\"'+-]*)?|-W[\w=+-]*|-w|-g|"
    r"-f(?!plugin)[\w=+-]+|-m[\w=.+-]+|-pthread)"
)
_FLAG = re.compile(
    rf"{_HOST_FLAG}|-Xcompiler(?:[=,]?{_HOST_FLAG}(?:,{_HOST_FLAG})*)?|-G|-lineinfo|--?use_fast_math|--?expt-[\w-]+|"
    r"--?extended-lambda|--?ptxas-options=[\w,=-]+|-Xptxas[=,]?[\w,=-]*|"
    r"-v|-dlcm=\w+|--?maxrregcount=?\d*|\d+|--?gencode([=,]?arch=compute_\w+,code=\[?[\w,]+\]?)?|arch=compute_\w+,code=\[?[\w,]+\]?|"
    r"-arch=sm_\w+|--?threads=?\d*|--?restrict|-l[\w.+-]+|-L/usr/[\w./-]+|--?diag-suppress=?[\d,]*|-res-usage"
)


class BuildFailed(Exception):
    """A unit did not compile, or asked for what is not allowed. `code` ends a build_error code."""

    def __init__(self, code: str, message: str, log: str = "") -> None:
        super().__init__(message)
        self.code, self.log = code, log


@dataclass
class Built:
    """What building took."""

    seconds: float = 0.0
    cached: bool | None = None
    """Whether all of it lay in the cache; None where there was nothing to build."""
    units: list[dict[str, Any]] = field(default_factory=list)
    facts: list[NativeFacts] = field(default_factory=list)


def content_key(files: dict[str, bytes]) -> str:
    """One hash over names and contents."""
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def toolchain(arch: str) -> str:
    """Versions that a library depends on, and the architecture: torch, the C++ compiler, nvcc."""
    versions = [_version(program(name)) for name in ("c++", "nvcc")]
    return json.dumps([torch.__version__, *versions, arch, FACTS_REVISION])


def program(name: str) -> str | None:
    """The compiler that a build in the sandbox finds."""
    return shutil.which(name, path=os.pathsep.join(BUILD_PATH))


def _version(program: str | None) -> list[str]:
    if program is None:
        return []
    real = Path(program).resolve()
    stamp = real.stat()
    return _told_version(program, str(real), stamp.st_mtime_ns, stamp.st_size)


@cache
def _told_version(program: str, real: str, changed_ns: int, size: int) -> list[str]:
    """The lines in which a compiler names its version; asked again once its file is another."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in told.stdout.splitlines() if re.search(r"\d+\.\d+", line)]
    return lines[:3]


def check_unit(unit: Any) -> dict[str, Any]:
    """The unit as we are willing to compile it. Raises BuildFailed naming the flag or field."""
    if not isinstance(unit, dict) or not _is_shaped(unit):
        raise BuildFailed("malformed", "the recorded build is malformed")
    if not isinstance(unit.get("name"), str) or not _NAME.match(unit["name"]):
        raise BuildFailed("name", f"extension name {str(unit.get('name'))[:60]!r}: use letters, digits, _")
    if not all(_is_texts(unit.get(key, [])) for key in (*_LISTS, "extra_sycl_cflags")):
        raise BuildFailed("malformed", "flags and include paths must be lists of strings")
    for key in _LISTS[:3]:
        for flag in unit.get(key) or []:
            if not _FLAG.fullmatch(str(flag)):
                advice = "; name folders in extra_include_paths" if str(flag).startswith("-I") else ""
                raise BuildFailed("flag", f"the flag {str(flag)[:100]!r} in {key} is not allowed{advice}")
    _check_paths(unit)
    return unit


def _check_paths(unit: dict[str, Any]) -> None:
    """Names and paths end in a build file, which reads some signs otherwise."""
    for name in unit["sources"]:
        if not _SOURCE.fullmatch(name):
            raise BuildFailed(
                "name", f"source file {name[:60]!r}: use letters, digits and any of _ . + - in its name"
            )
    for path in unit.get("extra_include_paths") or []:
        if not _INCLUDE.fullmatch(str(path)):
            raise BuildFailed("include", f"the include path {str(path)[:100]!r} does not exist here")


def wants_cards(unit: dict[str, Any]) -> bool:
    """Whether a checked unit has CUDA sources or asks for CUDA's headers and libraries."""
    sources = unit["sources"]
    return bool(
        unit.get("with_cuda") or sources.get("cuda") or any(n.endswith((".cu", ".cuh")) for n in sources)
    )


def _is_shaped(unit: dict[str, Any]) -> bool:
    """Whether there is nothing but what `extensions.unit_of` writes: no lists a thousand deep, say."""
    sources, functions = unit.get("sources"), unit.get("functions", [])
    if not isinstance(sources, dict) or not unit.keys() <= _FIELDS:
        return False
    listed = [one for text in sources.values() for one in (text if isinstance(text, list) else [text])]
    named = list(functions.values()) if isinstance(functions, dict) else functions
    switched = all(isinstance(unit.get(key, False), bool) for key in _SWITCHES)
    return unit.get("form") in ("files", "inline") and _is_texts(listed) and _is_texts(named) and switched


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class BuildCache:
    """Finished libraries by content; only this process writes here."""

    def __init__(self, folder: Path | None = None) -> None:
        chosen = os.environ.get("PKB_BUILD_CACHE")
        default = Path(__file__).parents[2] / "var" / "build-cache"
        self.folder = folder or (Path(chosen) if chosen else default)

    def get(self, key: str) -> tuple[Path, NativeFacts] | None:
        """The library and what was read off its build; None unless both are there."""
        path = self.folder / key
        try:
            facts = NativeFacts.read(json.loads(path.with_suffix(".json").read_text()))
            os.utime(path)
        except (OSError, ValueError, RecursionError):
            return None
        return path, facts

    def put(self, key: str, library: bytes, facts: NativeFacts) -> Path:
        """Store atomically, the library last, and drop the least recently used beyond the cap."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / key
        self._store(path.with_suffix(".json"), json.dumps(asdict(facts)).encode())
        self._store(path, library)
        self._prune()
        return path

    def units(self, key: str) -> list[Any] | None:
        """The builds that a file asked for; None unless they were kept."""
        path = self.folder / f"{key}{UNITS}"
        try:
            found = json.loads(path.read_text())
            os.utime(path)
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, list) else None

    def keep_units(self, key: str, units: list[Any]) -> None:
        """Remember the builds of a file; they count for the cap like libraries."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._store(self.folder / f"{key}{UNITS}", json.dumps(units).encode())
        self._prune()

    def _store(self, path: Path, content: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".new-", delete=False) as stream:
            stream.write(content)
        Path(stream.name).chmod(0o644)
        Path(stream.name).replace(path)

    def _prune(self) -> None:
        kept = []
        for path in self.folder.iterdir():
            if not path.name.startswith(".") and path.suffix in ("", UNITS):
                with suppress(FileNotFoundError):  # another worker prunes, too
                    kept.append((path.stat(), path))
        total = 0
        for found, path in sorted(kept, key=lambda one: one[0].st_mtime, reverse=True):
            total += max(found.st_size, LEAST_KEPT)
            if total > MAX_CACHE:
                path.unlink(missing_ok=True)
                if not path.suffix:
                    path.with_suffix(".json").unlink(missing_ok=True)


class Builder:
    """Compiles recorded units for one target."""

    def __init__(self, target: Target, cache_folder: Path | None = None) -> None:
        self.target = target
        self.cache = BuildCache(cache_folder)

    def remembered(self, files: dict[str, bytes]) -> list[Any] | None:
        """What the file asked for when it was last built here by these tools; None when it was not."""
        return self.cache.units(self._file_key(files))

    def remember(self, files: dict[str, bytes], units: list[Any]) -> None:
        """Spare the file's next score the import in which builds are recorded. Only for what has been built."""
        self.cache.keep_units(self._file_key(files), units)

    def _file_key(self, files: dict[str, bytes]) -> str:
        tools = toolchain(str(self.target.data.get("arch", "")))
        return hashlib.sha256((content_key(files) + tools + PROTOCOL_VERSION).encode()).hexdigest()

    def build(
        self,
        units: list[Any],
        limit_s: float,
        should_stop: Callable[[], bool] | None = None,
        beside: Beside | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
    ) -> tuple[dict[str, Path], Built]:
        """(path under `ext/` in the job's folder → library, what it took). Raises BuildFailed.

        All units of a file together have `limit_s`. `beside`: compile only while that allows it; its clock counts.
        `files`: the submission's, whose kernel files sources may include.
        """
        files = {name: content for name, content in (files or {}).items() if name.endswith(KERNEL_ENDINGS)}
        report, beside = Built(), beside or Beside()
        deadline = beside.clock() + limit_s
        libraries: dict[str, Path] = {}
        for raw in units[:MAX_UNITS]:
            unit = check_unit(raw)
            if unit.get("beside") != beside_hash(files):
                raise BuildFailed("malformed", "the recorded build is of other files")
            if self.target.device == "cpu" and wants_cards(unit):
                raise BuildFailed(
                    "needs_cuda",
                    f"{unit['name']} has CUDA sources, which run on cards only, and {self.target.slug} has none; "
                    "choose a target with cards, or write C++ for this one",
                )
            inner = unit_hash(unit)
            key = hashlib.sha256(
                (inner + toolchain(str(self.target.data.get("arch", "")))).encode()
            ).hexdigest()
            began = time.perf_counter()
            kept = self.cache.get(key)
            if kept is None:
                library, facts = self._compile(
                    unit, files, max(0.0, deadline - beside.clock()), should_stop, beside
                )
                path = self.cache.put(key, library, facts)
            else:
                path, facts = kept
            took = time.perf_counter() - began
            report.seconds += took
            report.cached = report.cached is not False and kept is not None
            row = {"name": unit["name"], "key": key[:16], "cached": kept is not None, "seconds": took}
            report.units.append(row | facts.hashes())
            report.facts.append(facts)
            libraries[f"ext/{inner}/{unit['name']}.so"] = path
        return libraries, report

    def _compile(
        self,
        unit: dict[str, Any],
        files: Mapping[str, bytes],
        limit_s: float,
        should_stop: Callable[[], bool] | None,
        beside: Beside,
    ) -> tuple[bytes, NativeFacts]:
        read_end, write_end = os.pipe()
        binds: dict[str | Path, str] = {}
        env = base_env(self.target, str(Path(python_inside()).parent.parent))
        env["PATH"] = os.pathsep.join([env["PATH"], *map(inside, WHEELS)])
        if arch := self.target.data.get("arch"):
            env["TORCH_CUDA_ARCH_LIST"] = re.sub(r"(\d)(a?)$", r".\1\2", str(arch))
        box = Sandbox(
            SandboxSpec(
                argv=[python_inside(), "-I", "/opt/pkb/rank/compile_unit.py", str(write_end)],
                pass_fds=(write_end,),
                ro_binds=binds,
                env=env,
                memory_bytes=6 << 30,
                pids_max=256,
                tmp_bytes=1 << 30,
                name="build",
            )
        )
        binds[str(box.folder / "rank")] = "/opt/pkb/rank"
        binds[str(box.folder / "job")] = "/job"
        try:
            shutil.copytree(RANK_CODE, box.folder / "rank", ignore=shutil.ignore_patterns("__pycache__"))
            (box.folder / "job").mkdir()
            (box.folder / "job" / "unit.json").write_text(json.dumps(unit))
            for name, content in files.items():
                (box.folder / "job" / name).write_bytes(content)
            for path in [box.folder, *box.folder.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            with beside.at_work(box):
                os.close(write_end)
                data = _read_all(read_end, limit_s, should_stop, beside.clock)
                memory = box.oom_killed()
        finally:
            os.close(read_end)
            box.kill()
            box.close_streams()
        return _library(data, memory)


def _read_all(
    descriptor: int, limit_s: float, should_stop: Callable[[], bool] | None, clock: Callable[[], float]
) -> bytes:
    """Everything until the other side closes. Raises BuildFailed on time or size."""
    deadline = clock() + limit_s
    data = bytearray()
    while True:
        left = deadline - clock()
        if left <= 0:
            raise BuildFailed("timeout", "the compiler was still at work when the time for builds was over")
        if should_stop is not None and should_stop():
            raise Stopped
        if not select.select([descriptor], [], [], min(left, 1.0))[0]:
            continue
        chunk = os.read(descriptor, 1 << 20)
        if not chunk:
            return bytes(data)
        data += chunk
        if len(data) > MAX_LIBRARY:
            raise BuildFailed("size", f"the library is larger than {MAX_LIBRARY >> 20} MiB")


def _library(data: bytes, out_of_memory: bool) -> tuple[bytes, NativeFacts]:
    head, _, library = data.partition(b"\n")
    if not head:
        if out_of_memory:
            raise BuildFailed("memory", "the compiler exceeded its memory limit")
        raise BuildFailed("crashed", "the compiler ended without a result")
    try:
        state = json.loads(head) if len(head) <= MAX_WORDS else None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict):
        # A compiler that the author's source has taken over may write anything here.
        raise BuildFailed("crashed", "the compiler ended with words that no build ends with")
    if not state.get("ok"):
        log = str(state.get("message", ""))
        if out_of_memory:  # of several compilers one was ended, and the others told of it
            raise BuildFailed("memory", "the compiler exceeded its memory limit", log)
        raise BuildFailed("compiler", "the extension did not build", log)
    return library, NativeFacts.read(state.get("facts"))


def source_line(log: str, source: str) -> tuple[str, int | None]:
    """The compiler's first error and the line of the author's file that it speaks of, if found.

    The compiler quotes the offending source line below its error; that text is looked up in the file. Where it
    stands there more than once, the compiler's own line number decides. Lines are Python's: a form feed ends none.
    """
    lines = log.splitlines()
    if (place := first_error(lines)) is None:
        return "", None
    index, head = place
    line, own = lines[index], re.split(r"\r\n|\r|\n", source)
    message = re.sub(r"^\S*/", "", line.strip())
    for quoted in lines[index + 1 : index + 4]:
        match = re.match(r"\s*\d+ \| (.*)", quoted)
        snippet = (match.group(1) if match else quoted).strip()
        found = [n for n, row in enumerate(own, 1) if len(snippet) >= 4 and snippet in row]
        if found:
            return line[head:], _nearest(found, own, message)
    if message.endswith("':"):  # the linker names the function first, and below it what is wrong
        message += f" {''.join(lines[index + 1 : index + 2])}"
    return message, None


def _nearest(found: list[int], own: list[str], message: str) -> int:
    """Of several lines of the file the one that fits `name(LINE): error` or `name:LINE: error`.

    The compiled text is a string of the file that begins at a line with quotes, below torch's includes.
    """
    told = re.match(r"[^():]+[(:](\d{1,7})", message)
    if told is None:
        return found[0]
    for above in HEADERS:
        for number in found:
            start = number - (int(told[1]) - above) + 1
            if 1 <= start <= len(own) and re.search(r"\"{3}|\'{3}", own[start - 1]):
                return number
    return found[0]
