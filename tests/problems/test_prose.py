"""Prose of declarations as paragraphs and numbered steps."""

from problems import registry
from problems.prose import Block, blocks

TEXT = """
First line
goes on.
0. A step
   of two lines.
1. Another.
Not indented: a paragraph.

Apart.
1. Counts anew.
"""


def test_steps_and_paragraphs_are_told_apart() -> None:
    assert blocks(TEXT) == [
        Block(["First line goes on."]),
        Block(["A step of two lines.", "Another."], start=0),
        Block(["Not indented: a paragraph."]),
        Block(["Apart."]),
        Block(["Counts anew."], start=1),
    ]


def test_no_word_of_the_catalogue_is_lost_and_steps_count_on() -> None:
    for problem in registry.all_problems():
        found = blocks(problem.semantics)
        words: list[str] = []
        for block in found:
            for number, text in enumerate(block.texts):
                words += [f"{block.start + number}."] if block.start is not None else []
                words += text.split()
        assert words == problem.semantics.split(), problem.slug
