"""Documents from docs/*.md as safe HTML."""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import nh3
from django.conf import settings
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

# In the order of the menu; a document appears once its file is there.
ORDER = ("participants", "api", "judge", "metrics", "architecture", "operate")
_TAGS = nh3.ALLOWED_TAGS
_ATTRIBUTES = {**nh3.ALLOWED_ATTRIBUTES, **{f"h{n}": {"id"} for n in range(1, 5)}, "code": {"class"}}
_LANGUAGE = re.compile(r"language-[a-z]+")


@dataclass(frozen=True)
class Document:
    """One document; `html` has been through the sanitiser."""

    slug: str
    title: str
    html: str


def titles() -> list[tuple[str, str]]:
    """Return (slug, title) of the documents there are."""
    found = (load(slug) for slug in ORDER)
    return [(document.slug, document.title) for document in found if document]


def load(slug: str) -> Document | None:
    """Return a document, None when there is none of this name."""
    path = Path(settings.BASE_DIR) / "docs" / f"{slug}.md"
    if slug not in ORDER or not path.is_file():
        return None
    return _rendered(path, slug, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _rendered(path: Path, slug: str, version: int) -> Document:
    text = path.read_text()
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    _give_ids(tokens)
    html = reader.renderer.render(tokens, reader.options, {})
    title = next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), slug.title())
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, attribute_filter=_filter, link_rel=None)
    return Document(slug, title, _scrollable(clean))


def _scrollable(html: str) -> str:
    """Let the keyboard reach what may scroll sideways: code and tables."""
    html = html.replace("<pre>", '<pre tabindex="0">')
    opening = '<div class="table-scroll" tabindex="0" role="region" aria-label="Table"><table>'
    return html.replace("<table>", opening).replace("</table>", "</table></div>")


def _filter(tag: str, name: str, value: str) -> str | None:
    if tag == "code" and name == "class":
        return value if _LANGUAGE.fullmatch(value) else None
    return value


def _give_ids(tokens: list[Token]) -> None:
    """Give every heading an id made from its text, so that parts can be linked to."""
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slugify(inline.content))
