"""What names say: which problem a file is for, what a zip may hold beside solution.py, which slug was meant.

Pure Python: the portal's door and the judge's command line read the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

BACKENDS = ("cuda", "triton", "parallelkittens", "cpp")
MAIN = "solution.py"
KERNEL_ENDINGS = (".cu", ".cuh", ".h")
KERNEL_NAMES = ", ".join(f"*{ending}" for ending in KERNEL_ENDINGS)
"""As people read it."""
NEAR = 4
_KERNEL = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,79}}(?:{'|'.join(map(re.escape, KERNEL_ENDINGS))})")
_FILE = re.compile(r"(?:(?P<number>\d{1,4})_)?(?P<stem>[A-Za-z0-9_]+)\.(?:py|zip)")


class BadName(ValueError):
    """A file's name does not say a problem; `code` tells why, `slug` what was read where nothing has that name."""

    def __init__(self, code: str, message: str, slug: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.slug = code, message, slug


def is_member(name: str) -> bool:
    """Whether a zip may hold a file of this name: solution.py, or a kernel file without a folder."""
    return name == MAIN or _KERNEL.fullmatch(name) is not None


def problem_of(name: str, catalogue: Mapping[str, int]) -> str:
    """The slug that a file's name says (`1_allreduce_cuda.py`, `allreduce.zip`); `catalogue` is slug -> number.

    Raises BadName with what to change.
    """
    match = _FILE.fullmatch(name)
    if match is None:
        raise BadName(
            "name.unknown_form", "Name files N_slug_backend.py or .zip, such as 1_allreduce_cuda.py."
        )
    stem = match["stem"]
    short = next((stem.removesuffix(f"_{word}") for word in BACKENDS if stem.endswith(f"_{word}")), stem)
    slug = stem if stem in catalogue else short
    if slug not in catalogue:
        raise BadName("name.no_problem", f"There is no problem {slug[:80]!r}.", slug)
    if match["number"] and int(match["number"]) != catalogue[slug]:
        raise BadName(
            "name.numbers_disagree",
            f"{slug} is problem {catalogue[slug]}, not {int(match['number'])}. Correct the name.",
        )
    return slug


def near(text: str, slugs: Iterable[str]) -> list[str]:
    """Slugs that somebody who wrote `text` may have meant, the nearest first."""
    known = list(slugs)
    wanted = text.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    inside = [slug for slug in known if len(wanted) > 2 and (wanted in slug or slug in wanted)]
    close = get_close_matches(wanted, known, n=NEAR, cutoff=0.5)
    return list(dict.fromkeys([*close, *inside]))[:NEAR]
