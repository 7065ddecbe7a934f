"""Source shown on pages: escaped, line by line, with nothing invisible left."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.highlight import MAX_HIGHLIGHTED, language_of, render


def test_markup_in_a_source_is_text() -> None:
    code = render("x = '<script>alert(1)</script>'\n")
    assert "<script" not in code.lines[0]
    assert "&lt;script&gt;" in "".join(code.lines)
    assert 'style="' not in code.lines[0]


@pytest.mark.parametrize(
    "character", ["\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00ad", "\x1b", "\x08", "\u0085"]
)
def test_invisible_characters_are_made_visible(character: str) -> None:
    code = render(f"x = 1  # a{character}b\n")
    shown = "".join(code.lines)
    assert character not in shown
    assert f"U+{ord(character):04X}" in shown
    assert code.hidden == 1


@given(st.text(max_size=300))
def test_any_text_keeps_its_lines_and_adds_only_our_spans(text: str) -> None:
    code = render(text)
    wanted = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    assert len(code.lines) == len(wanted)
    tags = re.findall(r"<[^>]*>", "\n".join(code.lines))
    assert all(re.fullmatch(r'</span>|<span class="[a-z0-9 -]+"(?: title="[\w +]+")?>', tag) for tag in tags)


def test_a_very_long_source_is_escaped_only() -> None:
    code = render("<" * (MAX_HIGHLIGHTED + 1))
    assert code.lines[0].startswith("&lt;&lt;")


def test_kernels_are_read_as_cuda() -> None:
    assert [language_of(n) for n in ("solution.py", "a.cu", "b.cuh", "c.h")] == [
        "python",
        "cuda",
        "cuda",
        "cuda",
    ]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["\n", 'R"('])
def test_what_takes_long_to_colour_is_shown_without_colours(piece: str) -> None:
    text = f"int a; {piece * (MAX_HIGHLIGHTED // 2 // len(piece))}"
    code = render(text, "cuda")
    assert "<span" not in code.lines[0]
    assert code.lines[0].startswith("int a;")
