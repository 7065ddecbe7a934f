"""The static scan: what a source does that a person may want to look at. Pure, and free of Django.

It reads, it never runs anything, and it never decides: `scan` raises flags for staff and for the
author's own eyes (`evaluator.diagnose.flags`). Whoever wants to hide from a static scan can; the judge
does not rely on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from evaluator.diagnose import native
from evaluator.diagnose.flags import Findings, Flag
from portal.core.python_source import is_readable
from problems.names import KERNEL_ENDINGS, MAIN

LONGEST_PATH = 32
MAX_NODES = 100_000
"""Parts of a syntax tree that are looked through: several times those of any file that a person wrote."""

_LAUNCHER = frozenset(
    {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
        "OMP_NUM_THREADS", "HOME", "TMPDIR",
    }
)  # fmt: skip
_LAUNCHER_PREFIXES = ("CUDA_", "TORCH_", "NCCL_", "TORCHELASTIC_", "TRITON_", "MKL_")
_BY_IMPORT = {
    "socket": "opens_sockets", "socketserver": "opens_sockets", "http": "opens_sockets", "ssl": "opens_sockets",
    "urllib": "opens_sockets", "requests": "opens_sockets", "ftplib": "opens_sockets", "smtplib": "opens_sockets",
    "telnetlib": "opens_sockets", "xmlrpc": "opens_sockets",
    "subprocess": "spawns_processes", "multiprocessing": "spawns_processes", "pty": "spawns_processes",
    "torch.multiprocessing": "spawns_processes",
    "threading": "starts_threads", "_thread": "starts_threads", "asyncio": "starts_threads",
    "ctypes": "uses_ctypes", "cffi": "uses_ctypes", "_ctypes": "uses_ctypes", "numpy.ctypeslib": "uses_ctypes",
    "unittest.mock": "patches_modules", "marshal": "runs_generated_code", "tracemalloc": "walks_frames",
}  # fmt: skip
_BY_NAME = {
    "sys._getframe": "walks_frames", "sys._current_frames": "walks_frames", "sys.settrace": "walks_frames",
    "sys.setprofile": "walks_frames", "inspect.currentframe": "walks_frames", "inspect.stack": "walks_frames",
    "inspect.getouterframes": "walks_frames", "inspect.trace": "walks_frames", "traceback.walk_stack": "walks_frames",
    "sys.modules.values": "walks_frames", "sys.modules.items": "walks_frames", "sys.modules.copy": "walks_frames",
    "gc.get_objects": "walks_frames", "gc.get_referrers": "walks_frames", "gc.get_referents": "walks_frames",
    "os.fork": "spawns_processes", "os.forkpty": "spawns_processes", "os.system": "spawns_processes",
    "os.popen": "spawns_processes", "os.posix_spawn": "spawns_processes", "os.posix_spawnp": "spawns_processes",
    "concurrent.futures.ProcessPoolExecutor": "spawns_processes",
    "concurrent.futures.ThreadPoolExecutor": "starts_threads",
    "torch.distributed.TCPStore": "opens_sockets", "os.register_at_fork": "patches_modules",
    "sys.meta_path": "changes_imports", "sys.path_hooks": "changes_imports", "sys.path": "changes_imports",
    "importlib.reload": "changes_imports", "builtins.__import__": "changes_imports",
}  # fmt: skip
_PREFIXES = {"os.exec": "spawns_processes", "os.spawn": "spawns_processes"}
_CODE = frozenset({"exec", "eval", "compile"})
_FRAME_ATTRIBUTES = frozenset({"f_back", "f_globals", "f_builtins", "tb_frame", "gi_frame"})
_SETTINGS = ("torch.backends.", "torch._dynamo.config", "torch._inductor.config")
_KERNEL_MAKERS = ("torch.utils.cpp_extension.", "utils.cuda_helpers.", "utils.parallelkittens_runtime.")
_MUTATING_DICT = frozenset({"update", "setdefault", "pop", "clear", "__setitem__"})


def scan(files: Mapping[str, bytes], *, reference: str = "") -> list[Flag]:
    """Flags of a submission: `files` maps names to contents and holds `solution.py`.

    `reference` is the text of the problem's reference, to recognise a copy of it. A file that cannot
    be read raises the flag `unreadable` instead of an exception.
    """
    findings = Findings()
    kernels = False
    for name, content in sorted(files.items()):
        text = content.decode("utf-8-sig", "replace")
        if name.endswith(KERNEL_ENDINGS):
            native.scan(text, findings, file=name)
            kernels |= native.has_kernel(text)
    try:
        tree = _read(files.get(MAIN, b"").decode("utf-8-sig", "replace"))
        scanned = _Python(tree, findings)
        scanned.run()
        if reference and _same(tree, ast.parse(reference)):
            findings.add("reference_copy", 1)
        elif scanned.communicates and not (kernels or scanned.own_kernels):
            findings.add("library_only", scanned.communicates)
    except SyntaxError:
        pass  # the door or the judge says so in better words
    except (ValueError, RecursionError, MemoryError):
        findings.add("unreadable", 1)
    return findings.flags()


def _read(text: str) -> ast.Module:
    if not is_readable(text):
        raise ValueError("too long to be read here")
    return ast.parse(text)


def _same(one: ast.Module, other: ast.Module) -> bool:
    """Whether two modules say the same, docstrings and layout aside."""

    def told(tree: ast.Module) -> str:
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
                node, False
            ):
                node.body = node.body[1:]
        return ast.dump(tree)

    return told(one) == told(other)


class _Python:
    """One walk over a module with what its names stand for."""

    def __init__(self, tree: ast.Module, findings: Findings) -> None:
        self.tree, self.findings = tree, findings
        self.names: dict[str, str] = {}
        self.communicates = 0
        self.own_kernels = False

    def run(self) -> None:
        """Learn the names first, so that the order of statements does not matter."""
        nodes = list(ast.walk(self.tree))
        if len(nodes) > MAX_NODES:
            raise ValueError("too long to be looked through")
        for node in nodes:
            self._learn_import(node)
        for node in nodes:
            self._learn_alias(node)
        for node in nodes:
            self._imports(node)
            self._uses(node)
            self._writes(node)
            self._handlers(node)
            self._texts(node)

    def path(self, node: ast.AST) -> str:
        """Dotted path of an expression that is rooted in an import, else the empty string."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
            if len(parts) > LONGEST_PATH:
                return ""  # no name that means anything here; every part of a chain is asked for
        root = ""
        if isinstance(node, ast.Name):
            root = self.names.get(node.id, "")
        elif isinstance(node, ast.Call):
            root = self._called(node)
        elif isinstance(node, ast.Subscript) and self.path(node.value) == "sys.modules":
            root = _constant(node.slice) or "sys.modules[]"
        return ".".join([root, *reversed(parts)]) if root else ""

    def _called(self, node: ast.Call) -> str:
        """What `getattr(module, …)`, `__import__(…)` and `import_module(…)` stand for."""
        first = node.args[0] if node.args else None
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "getattr" and first is not None:
            base = self.path(first)
            attribute = _constant(node.args[1]) if len(node.args) > 1 else ""
            return f"{base}.{attribute or '?'}" if base else ""
        if name == "__import__" or self.path(node.func) == "importlib.import_module":
            return (_constant(first) if first is not None else "") or "module"
        return ""

    def _learn_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.names[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}".strip(".")

    def _learn_alias(self, node: ast.AST) -> None:
        """`t = torch` makes `t` stand for the module."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            name, stands = node.targets[0], self.path(node.value)
            if stands and isinstance(name, ast.Name):
                self.names.setdefault(name.id, stands)

    def _imports(self, node: ast.AST) -> None:
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            found = [name] if (name := self._called(node)) else []
        for name in found:
            for key in _heads(name):
                if key in _BY_IMPORT:
                    self.findings.add(_BY_IMPORT[key], _line(node))
            self.own_kernels |= name.startswith(("triton", "cutlass", "cupy")) or "_symmetric_memory" in name

    def _uses(self, node: ast.AST) -> None:
        """Names and attributes by what they stand for, and calls."""
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            self._use(self.path(node), node)
            if isinstance(node, ast.Attribute) and node.attr in _FRAME_ATTRIBUTES:
                self.findings.add("walks_frames", _line(node))
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._use(f"{node.module}.{alias.name}", node)
        if isinstance(node, ast.Call):
            self._call(node)
            if (name := self._called(node)) and name != "module":
                self._use(name, node)

    def _use(self, path: str, node: ast.AST) -> None:
        if not path:
            return
        code = _BY_NAME.get(path)
        code = code or next((c for start, c in _PREFIXES.items() if path.startswith(start)), None)
        if code and code != "changes_imports":
            self.findings.add(code, _line(node))
        if path.startswith("torch.distributed.") and not self.communicates:
            self.communicates = _line(node)
        self.own_kernels |= path.startswith(_KERNEL_MAKERS)

    def _call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        target = self.path(node.func)
        first = node.args[0] if node.args else None
        if name in ("setattr", "delattr") and first is not None:
            self._patched(self.path(first), node)
        if name in _CODE and name not in self.names:
            self.findings.add("runs_generated_code", _line(node))
        if target == "importlib.reload" or target.startswith(
            ("sys.path.", "sys.meta_path.", "sys.path_hooks.")
        ):
            self.findings.add("changes_imports", _line(node))
        if target == "contextlib.suppress" and any(_is_everything(arg) for arg in node.args):
            self.findings.add("catches_everything", _line(node))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATING_DICT:
            self._patched(self._namespace(node.func.value), node)
            if self.path(node.func.value) == "sys.modules":
                self.findings.add("changes_imports", _line(node))
        self._environment(node, target, first)

    def _environment(self, node: ast.Call, target: str, first: ast.AST | None) -> None:
        if target in ("os.getenv", "os.environ.get", "os.environb.get"):
            self._variable(_constant(first) if first is not None else "", node)
        elif target.startswith(
            ("os.environ.items", "os.environ.copy", "os.environ.keys", "os.environ.values")
        ):
            self.findings.add("reads_environment", _line(node))

    def _variable(self, name: str, node: ast.AST) -> None:
        if name not in _LAUNCHER and not name.startswith(_LAUNCHER_PREFIXES):
            self.findings.add("reads_environment", _line(node))

    def _writes(self, node: ast.AST) -> None:
        """Assignments to what was imported."""
        for target in _targets(node):
            if isinstance(target, ast.Attribute):
                self._patched(self.path(target.value), target, attribute=target.attr)
            elif isinstance(target, ast.Subscript):
                where = self.path(target.value)
                if where == "sys.modules" or where in ("sys.path", "sys.meta_path"):
                    self.findings.add("changes_imports", _line(node))
                self._patched(self._namespace(target.value), target)
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            return
        if self.path(node.value) in ("os.environ", "os.environb"):
            self._variable(_constant(node.slice), node)

    def _namespace(self, node: ast.AST) -> str:
        """Path of the module behind `vars(module)` and `module.__dict__`."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "vars"
            and node.args
        ):
            return self.path(node.args[0])
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return self.path(node.value)
        return ""

    def _patched(self, path: str, node: ast.AST, attribute: str = "") -> None:
        if not path:
            return
        whole = f"{path}.{attribute}"
        if whole in ("sys.path", "sys.meta_path", "sys.path_hooks", "sys.modules"):
            self.findings.add("changes_imports", _line(node))
        elif whole.startswith(_SETTINGS):
            self.findings.add("changes_settings", _line(node))
        else:
            self.findings.add("patches_modules", _line(node))

    def _handlers(self, node: ast.AST) -> None:
        """`except Exception` and its like, when nothing is raised from it."""
        if not isinstance(node, ast.ExceptHandler) or not (node.type is None or _is_everything(node.type)):
            return
        if not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
            self.findings.add("catches_everything", _line(node))

    def _texts(self, node: ast.AST) -> None:
        """Strings: C++ and CUDA sources go to the lexer, paths are looked at."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
            return
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if native.looks_native(text):
            native.scan(text, self.findings, file=MAIN, first_line=node.lineno)
            self.own_kernels = True
        elif native.PLACES.search(text) and len(text) < 400:
            self.findings.add("reads_process_files", _line(node))


def _heads(name: str) -> Iterator[str]:
    """`a`, `a.b`, `a.b.c` of a dotted name."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))


def _constant(node: ast.AST) -> str:
    """The text of a string constant, else the empty string."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _targets(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement assigns to or deletes, tuples taken apart."""
    waiting: list[ast.AST] = []
    if isinstance(node, ast.Assign | ast.Delete):
        waiting = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        waiting = [node.target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting.extend(target.elts)
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        else:
            yield target


def _is_everything(node: ast.AST) -> bool:
    """Whether an except clause names Exception or BaseException, alone or among others."""
    if isinstance(node, ast.Tuple):
        return any(_is_everything(item) for item in node.elts)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("Exception", "BaseException")
