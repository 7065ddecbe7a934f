"""What of a source runs on cards only, as far as reading it tells: pure Python, nothing executed."""

from __future__ import annotations

import ast
import io
import zipfile

from portal.core.python_source import is_readable
from portal.submissions.validation import Source
from problems.models import Target

_CUDA, _TRITON = "CUDA sources", "Triton kernels"
_WORDS = ("cuda_sources", "compile_cuda_extension", "load_inline", "triton")


def notice(source: Source, target: Target) -> str:
    """Say that a source seems to need cards where the target has none; else empty.

    Only a word: a file may hold such code and leave it alone where there are no cards.
    """
    what = "" if target.spec.get("device") != "cpu" else _needs(source)
    if not what:
        return ""
    return (
        f"The file has {what}, which run on cards only, and {target.slug} has none. Unless it leaves them alone there, "
        "it will end without being timed. You can cancel it and send it for a target with cards."
    )


def _needs(source: Source) -> str:
    if source.is_bundle:
        with zipfile.ZipFile(io.BytesIO(source.content)) as packed:
            if any(name.endswith((".cu", ".cuh")) for name in packed.namelist()):
                return _CUDA
    if not is_readable(source.main) or not any(word in source.main for word in _WORDS):
        return ""
    nodes = list(ast.walk(ast.parse(source.main)))
    names = _names_of_triton(nodes)
    found = {_found(node, names) for node in nodes}
    return next((what for what in (_CUDA, _TRITON) if what in found), "")


def _names_of_triton(nodes: list[ast.AST]) -> set[str]:
    """What the file calls the module (`import triton as tr`)."""
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {"triton", *(it.asname for it in imported if it.name == "triton" and it.asname)}


def _found(node: ast.AST, triton: set[str]) -> str:
    match node:
        case ast.keyword(arg="cuda_sources", value=value):
            return "" if _is_nothing(value) else _CUDA
        case ast.Call(func=func, args=args):
            name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
            third = name == "load_inline" and len(args) > 2 and not _is_nothing(args[2])
            return _CUDA if third or name == "compile_cuda_extension" else ""
        case ast.Attribute(value=ast.Name(id=module), attr="jit"):
            return _TRITON if module in triton else ""
        case ast.ImportFrom(module="triton", names=names):
            return _TRITON if any(it.name == "jit" for it in names) else ""
    return ""


def _is_nothing(value: ast.AST) -> bool:
    match value:
        case ast.Constant(value=None | "") | ast.List(elts=[]) | ast.Tuple(elts=[]):
            return True
    return False
