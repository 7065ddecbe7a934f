"""Which Python sources are worth a syntax tree: pure Python, no Django.

Some sources cost a thousand bytes of memory for each of theirs, and Python 3.11 needs time that grows with the square
of the number of fields in an f-string: one file of 1 MiB held a process for two minutes. What a person or a model
writes is far below these limits.
"""

MAX_READ = 256 * 1024
MAX_BRACES = 10_000


def is_readable(text: str) -> bool:
    """Whether to parse a text takes no more than a few seconds and some hundred megabytes."""
    return len(text) <= MAX_READ and text.count("{") <= MAX_BRACES
