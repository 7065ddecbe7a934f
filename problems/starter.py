"""The file to start from: a problem's reference under the name that the door reads. Free of Django."""

from collections.abc import Mapping
from typing import Any


def name_of(number: int, slug: str) -> str:
    """Return the file's name, which says the problem."""
    return f"{number}_{slug}.py"


def text_of(number: int, title: str, spec: Mapping[str, Any]) -> str:
    """Return the signature with the reference's body: correct as it stands, and as fast as the reference."""
    return (
        f"# Problem {number}: {' '.join(title.split())}\n"
        "#\n"
        "# Every rank calls `solution` with its own arguments. The body is the reference's, so this file is correct\n"
        "# as it stands and no faster; put yours in its place. Name, arguments and outputs stay as they are.\n\n"
        f"{spec['reference']}"
    )
