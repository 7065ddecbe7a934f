"""The door's reading of a source: what is certainly wrong is refused, everything else is let in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.diagnose.triage import scan
from portal.core.errors import DomainError, InvalidInput
from portal.submissions.validation import MAX_BYTES, read_source, shown_name

BINDINGS = {
    "def": "def solution(x):\n    return x",
    "async def": "async def solution(x):\n    return x",
    "class": "class solution:\n    pass",
    "assignment": "solution = print",
    "annotated": "solution: object = print",
    "augmented": "solution = 1\nsolution += 1",
    "unpacking": "a, (solution, *b) = f()",
    "star": "a, *solution = f()",
    "import as": "import torch as solution",
    "from import": "from torch import solution",
    "from import as": "from torch import nn as solution",
    "dotted import": "import solution.part",
    "import *": "from torch import *",
    "for": "for solution in range(3):\n    pass",
    "with": "with f() as solution:\n    pass",
    "try": "try:\n    import torch\nexcept ImportError:\n    pass\nelse:\n    def solution(x): ...",
    "except": "try:\n    pass\nexcept ValueError as solution:\n    pass",
    "if": "if True:\n    if False:\n        solution = None",
    "while": "while (solution := f()):\n    break",
    "walrus in a comprehension": "[solution := n for n in range(3)]",
    "walrus in a default": "def f(x=(solution := 3)):\n    pass",
    "walrus in a decorator": "@(solution := f)\ndef g(): ...",
    "walrus in a lambda default": "f = lambda x=(solution := 3): x",
    "match": "match f():\n    case [solution, *_]:\n        pass",
    "match as": "match f():\n    case int() as solution:\n        pass",
    "match rest": "match f():\n    case {'a': 1, **solution}:\n        pass",
    "global": "def make():\n    global solution\n    solution = print\nmake()",
    "globals()": "globals()['solution'] = print",
    "exec": "exec('def solution(x): ...')",
    "setattr": "import sys\nsetattr(sys.modules[__name__], 'solution', print)",
    "module getattr": "def __getattr__(name):\n    return print",
    "vars": "vars()['solution'] = print",
}

WITHOUT = {
    "other name": "def solve(x):\n    return x",
    "method": "class A:\n    def solution(self, x):\n        return x",
    "nested": "def outer():\n    def solution(x):\n        return x\n    return solution",
    "only read": "print(solution)",
    "only an attribute": "import torch\ntorch.solution = 1",
    "local in a lambda": "f = lambda: [solution for solution in range(3)]",
    "comment": "# def solution(x): ...",
    "string": "'''def solution(x): ...'''",
    "nothing": "\n",
}


def read(text: str | bytes, *, name: str = "s.py", arity: int | None = 1) -> None:
    content = text if isinstance(text, bytes) else text.encode()
    read_source(filename=name, content=content, arity=arity)


def refusal(text: str | bytes, **kw: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(text, **kw)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("text", BINDINGS.values(), ids=BINDINGS)
def test_every_way_to_bind_the_name_is_let_in(text: str) -> None:
    read(text)


@pytest.mark.parametrize("text", WITHOUT.values(), ids=WITHOUT)
def test_no_binding_at_the_top_level_is_refused(text: str) -> None:
    error = refusal(text)
    assert (error.code, error.field) == ("source.no_solution", "file")


@pytest.mark.parametrize(
    ("signature", "arity", "fits"),
    [
        ("x", 1, True),
        ("x", 2, False),
        ("x, y", 1, False),
        ("x, y=1", 1, True),
        ("x, /, y", 2, True),
        ("*args", 7, True),
        ("x, *args", 1, True),
        ("x, y, *args", 1, False),
        ("x, *, group", 1, False),
        ("x, *, group=None", 1, True),
        ("**kw", 1, False),
        ("", 1, False),
        ("", 0, True),
    ],
)
def test_a_plain_def_must_take_the_arguments(signature: str, arity: int, fits: bool) -> None:
    text = f"def solution({signature}):\n    return None"
    if fits:
        read(text, arity=arity)
    else:
        assert refusal(text, arity=arity).code == "source.arity"


@pytest.mark.parametrize(
    "text",
    [
        "@wrap\ndef solution():\n    pass",
        "def solution():\n    pass\nsolution = wrap(solution)",
        "if True:\n    def solution(x): ...\nelse:\n    def solution(): ...",
        "if True:\n    def solution(): ...",
        "def solution(): ...\nfrom other import *",
    ],
)
def test_an_arity_that_is_not_certain_is_let_in(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    "lines", ["# coding: utf-8\nx = 1", "# coding: latin-1\r\nx = 1", "# a\rx = 'coding: nope'"]
)
def test_a_declared_encoding_that_python_knows_is_let_in(lines: str) -> None:
    read(f"{lines}\ndef solution(x): pass")


def test_syntax_errors_say_the_line() -> None:
    error = refusal("import torch\n\ndef solution(x:\n    return x\n")
    assert error.code == "source.syntax_error"
    assert error.extra["line"] == 3
    assert "Line 3" in error.message


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "source.empty"),
        (b"def solution(x): pass\xff", "source.not_utf8"),
        (b"\xfe\xff\x00d", "source.not_utf8"),
        (b"# coding: nope\ndef solution(x): pass", "source.encoding"),
        (b"\xef\xbb\xbf# coding: latin-1\ndef solution(x): pass", "source.encoding"),
        (b"def solution(x): '\0'", "source.nul"),
        (b"#" * (MAX_BYTES + 1), "source.too_large"),
        (b"x = " + b"(" * 300 + b")" * 300, "source.syntax_error"),
        (b"x = " + b"-" * 100_000 + b"1", "source.too_complex"),
        (b"x = a" + b".b" * 100_000, "source.too_complex"),
    ],
    ids=[
        "empty",
        "not UTF-8",
        "UTF-16",
        "unknown encoding",
        "BOM and another",
        "NUL",
        "too large",
        "parentheses",
        "unary",
        "attributes",
    ],
)
def test_what_is_no_source_is_refused(content: bytes, code: str) -> None:
    error = refusal(content)
    assert error.code == code
    assert error.status == (413 if code == "source.too_large" else 422)
    assert error.message.endswith(".")


def test_the_largest_allowed_file_is_let_in() -> None:
    head = b"def solution(x): return x\n#"
    read(head + b"x" * (MAX_BYTES - len(head)))


def test_a_byte_order_mark_is_no_error() -> None:
    read("\ufeffdef solution(x):\n    return x\n")


@given(st.binary(max_size=300))
def test_any_bytes_are_let_in_or_refused_with_a_reason(content: bytes) -> None:
    refusal = None
    try:
        read(content)
    except DomainError as error:
        refusal = error
    assert refusal is None or (refusal.field == "file" and refusal.code and refusal.message)


@given(st.text(max_size=200))
def test_shown_names_are_harmless(name: str) -> None:
    shown = shown_name(name)
    assert 0 < len(shown) <= 120
    assert not set(shown) & set('/\\"\r\n\0<>')
    assert not shown.lower().endswith(".zip")


@pytest.mark.parametrize("name", ["f.zip.", "f.zip ", "f.ZIP. .", "a" * 116 + ".zip.py", "a" * 117 + ".zip"])
def test_the_name_of_a_plain_file_never_becomes_that_of_a_zip(name: str) -> None:
    shown = shown_name(name)
    assert not shown.lower().endswith(".zip")
    assert len(shown) <= 120
    assert shown_name(name, bundle=True).endswith(".zip")


COSTLY = {
    "fields of an f-string": "x = f'" + "{a}" * 330_000 + "'",
    "short statements": "a;" * 500_000,
    "calls": "a(" + "b()," * 240_000 + ")",
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY)
def test_a_file_that_takes_minutes_or_a_gigabyte_to_parse_is_not_parsed_here(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge reads it, in its sandbox."""
    parsed: list[str] = []
    monkeypatch.setattr("ast.parse", lambda *args, **options: parsed.append("door"))
    whole = f"{text}\ndef solution(x): return x\n"
    assert read_source(filename="s.py", content=whole.encode(), arity=1).main == whole
    assert scan({"solution.py": whole.encode()})[0].code == "unreadable"
    assert parsed == []
