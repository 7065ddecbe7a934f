"""What the door can say about a source without running it: pure Python, no Django, nothing executed.

The door refuses a file for its `solution` only when it is certain that the judge could not call it.
Everything less certain is accepted and may end as `contract_error`.
"""

import ast
import codecs
import hashlib
import io
import re
import symtable
import tokenize
from dataclasses import dataclass

from portal.core.errors import InvalidInput
from portal.core.python_source import is_readable
from portal.submissions import bundles

ENTRY = "solution"
MAX_BYTES = 1024 * 1024
_FIELD = "file"

# With one of these names a file can bind `solution` in ways that no reading of it can exclude.
_DYNAMIC = frozenset(
    "exec eval compile globals locals vars setattr __dict__ __getattr__ __import__ modules importlib "
    "runpy ctypes builtins __builtins__ inspect sys gc __globals__ f_globals f_locals".split()
)


@dataclass(frozen=True)
class Source:
    """A source that the door accepts."""

    name: str
    content: bytes
    sha256: str
    main: str
    main_sha256: str

    @property
    def is_bundle(self) -> bool:
        """Whether it is a zip and not one Python file."""
        return self.name.endswith(".zip")


def read_source(
    *, filename: str, content: bytes, arity: int | None, max_bytes: int = MAX_BYTES, field: str = _FIELD
) -> Source:
    """Return the source, or raise InvalidInput with the field, a stable code and what to change.

    `arity` is the number of positional arguments that the problem passes, None when not known.
    """
    if not content:
        raise InvalidInput(
            "source.empty", "The file is empty. Send the file with `solution` in it.", field=field
        )
    if len(content) > max_bytes:
        raise InvalidInput(
            "source.too_large",
            f"The file is larger than {max_bytes:,} bytes. Remove data from it; sources rarely need that much.",
            field=field,
            status=413,
        )
    if bundles.looks_like_zip(content):
        members = bundles.read(content, max_total=max_bytes, field=field)
        for name, data in members.items():
            decode(data, name, field)
        raw = members[bundles.MAIN]
        main, kept = decode(raw, bundles.MAIN, field), "solution.zip"
    elif filename.lower().endswith(".zip"):
        raise InvalidInput(
            "zip.broken",
            "The name ends in .zip but this is no zip archive. Pack solution.py with `zip`, or send the .py.",
            field=field,
        )
    else:
        raw = content
        main, kept = decode(content, "the file", field), "solution.py"
    _demand_encoding(raw, field)
    check_entry(main, arity, field)
    return Source(kept, content, hashlib.sha256(content).hexdigest(), main, hashlib.sha256(raw).hexdigest())


def decode(data: bytes, name: str, field: str = _FIELD) -> str:
    """Return text, or raise InvalidInput for what is not UTF-8 or holds a NUL."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput(
            "source.not_utf8", f"The bytes of {name} are UTF-16. Save the file as UTF-8.", field=field
        )
    if (position := data.find(b"\0")) >= 0:
        raise InvalidInput(
            "source.nul",
            f"There is a NUL byte at offset {position} of {name}. Send source text.",
            field=field,
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "source.not_utf8",
            f"Byte {error.start} of {name} (0x{data[error.start]:02x}) is not UTF-8. Save the file as UTF-8.",
            field=field,
        ) from error


def _demand_encoding(data: bytes, field: str) -> None:
    """Refuse a declaration of an encoding with which Python cannot read the file."""
    lines = io.BytesIO(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    try:
        tokenize.detect_encoding(lines.readline)
    except SyntaxError as error:
        raise InvalidInput(
            "source.encoding",
            f"Python cannot read the file: {error.msg}. Remove the line that declares the encoding; UTF-8 needs none.",
            field=field,
        ) from error


def check_entry(text: str, arity: int | None, field: str = _FIELD) -> None:
    """Raise InvalidInput for a syntax error or when `solution` is certainly missing or not callable so.

    What would take too long to read is left to the judge.
    """
    if not is_readable(text):
        return
    tree = _parse(text, field)
    if _is_dynamic(tree):
        return
    found = bindings_of(tree, ENTRY)
    if not found:
        raise InvalidInput(
            "source.no_solution",
            "The file binds no name `solution` at its top level. Define `def solution(...)` there.",
            field=field,
        )
    only = found[0]
    if arity is None or len(found) > 1 or not isinstance(only, ast.FunctionDef) or only.decorator_list:
        return
    if only in tree.body and (why := _cannot_take(only.args, arity)):
        raise InvalidInput(
            "source.arity",
            f"`solution` on line {only.lineno} {why}; the problem passes {arity} positional argument(s).",
            field=field,
            line=only.lineno,
        )


def _parse(text: str, field: str) -> ast.Module:
    try:
        tree = ast.parse(text)
        # Scopes are checked too; code is not generated, since nested `finally` makes that exponential.
        symtable.symtable(text, "solution.py", "exec")
    except SyntaxError as error:
        line = error.lineno or 0
        raise InvalidInput(
            "source.syntax_error",
            f"Line {line}, column {error.offset or 0}: {error.msg}. Python 3.11 cannot read the file.",
            field=field,
            line=line,
        ) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise InvalidInput(
            "source.too_complex",
            "Python cannot parse the file: an expression is nested too deeply or a literal is too large.",
            field=field,
        ) from error
    return tree


def _is_dynamic(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                if name in _DYNAMIC:
                    return True
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                if any(a.name == "*" or _DYNAMIC & set(a.name.split(".")) for a in names):
                    return True
    return False


def bindings_of(tree: ast.Module, name: str) -> list[ast.AST]:
    """Return every node that can bind `name` in the module's own scope; rather one too many than too few."""
    found: list[ast.AST] = []
    todo: list[tuple[ast.AST, bool]] = [(child, True) for child in tree.body]
    while todo:
        node, top = todo.pop()
        if top and name in _names_bound(node):
            found.append(node)
        if isinstance(node, ast.Global) and name in node.names:
            found.append(node)
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        todo.extend((child, top and not inner) for child in ast.iter_child_nodes(node))
        if inner and top:  # decorators, defaults, bases: evaluated outside, `:=` there binds outside
            todo.extend((w, True) for w in ast.walk(node) if isinstance(w, ast.NamedExpr))
    return found


def _names_bound(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Store()):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(a.asname or a.name).split(".")[0] for a in names}
        case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
            return {name}
        case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            return {name}
    return set()


def _cannot_take(args: ast.arguments, arity: int) -> str:
    """Return why a call with `arity` positional arguments must fail, empty when it need not."""
    takes = len(args.posonlyargs) + len(args.args)
    needs = takes - len(args.defaults)
    if any(default is None for default in args.kw_defaults):
        return "has a keyword-only argument without a default"
    if arity < needs:
        return f"needs at least {needs}"
    if arity > takes and args.vararg is None:
        return f"takes at most {takes}"
    return ""


_UNPRINTABLE = re.compile(r"[^\w .()+-]+")


def shown_name(filename: str, *, bundle: bool = False) -> str:
    """Return a name fit to show and to offer for download: no path, no odd characters, 120 at most.

    That of a bundle ends in `.zip`, whatever it was called, and no other does.
    """
    base = re.split(r"[/\\]", filename)[-1]
    clean = _UNPRINTABLE.sub("_", base).strip(" .")
    if bundle:
        return f"{re.sub(r'(?i)[.]zip$', '', clean)[:116] or 'solution'}.zip"
    plain = clean[:120].strip(" .") or "solution.py"
    return f"{plain[:117]}.py" if plain.lower().endswith(".zip") else plain
