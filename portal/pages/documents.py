"""Documents from docs/*.md and docs/measurements/*.md as safe HTML."""

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import nh3
from django.conf import settings
from django.urls import reverse
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

FIRST = ("participants", "api", "judge", "problems")
"""What most readers look for heads the menu; every other file of docs/ follows by name, measurements last."""
FOLDER = "measurements"

_TAGS = nh3.ALLOWED_TAGS
_ATTRIBUTES = {**nh3.ALLOWED_ATTRIBUTES, **{f"h{n}": {"id"} for n in range(1, 5)}, "code": {"class"}}
_LANGUAGE = re.compile(r"language-[a-z]+")
_FILE = re.compile(r"((?:(?:\w+|\.\.)/)?[\w-]+)\.md(#.*)?")


@dataclass(frozen=True)
class Document:
    """One document; `html` has been through the sanitiser."""

    slug: str
    title: str
    html: str


def titles() -> list[tuple[str, str]]:
    """Return (slug, title) of the documents there are."""
    found = (load(slug) for slug in _names())
    return [(document.slug, document.title) for document in found if document]


def _docs() -> Path:
    return Path(settings.BASE_DIR) / "docs"


def _names() -> list[str]:
    """The files there are, without their ending and in the order of the menu."""
    names = _files_in(_docs())
    first = sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return first + [f"{FOLDER}/{name}" for name in _files_in(_docs() / FOLDER)]


def _files_in(folder: Path) -> list[str]:
    """Names of documents; a folder of such a name, or a link that leads nowhere (an editor's lock), is none."""
    return sorted(path.stem for path in folder.glob("*.md") if path.is_file())


def load(slug: str) -> Document | None:
    """Return a document, None when there is none of this name."""
    if slug not in _names():
        return None
    path = _docs() / f"{slug}.md"
    return _rendered(path, slug, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _rendered(path: Path, slug: str, version: int) -> Document:
    text = path.read_text(encoding="utf-8", errors="replace")
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    _give_ids(tokens)
    _serve_links(tokens, slug)
    html = reader.renderer.render(tokens, reader.options, {})
    title = next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), slug.title())
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, attribute_filter=_filter, link_rel=None)
    return Document(slug, title, _scrollable(clean))


def _scrollable(html: str) -> str:
    """Let the keyboard reach what may scroll sideways: code and tables."""
    html = html.replace("<pre>", '<pre tabindex="0">')
    first, *others = html.split("<table>")
    regions = [
        f'<div class="table-scroll" tabindex="0" role="region" aria-label="Table {number}"><table>{rest}'
        for number, rest in enumerate(others, 1)
    ]
    return "".join([first, *regions]).replace("</table>", "</table></div>")


def _filter(tag: str, name: str, value: str) -> str | None:
    if tag == "code" and name == "class":
        return value if _LANGUAGE.fullmatch(value) else None
    return value


def _give_ids(tokens: list[Token]) -> None:
    """Give every heading an id made from its text, so that parts can be linked to."""
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slugify(inline.content))


def _serve_links(tokens: list[Token], slug: str) -> None:
    """Let links to files of other documents, and their bare names in code, lead to their pages."""
    for parent in tokens:
        linked, children = False, []
        for token in parent.children or []:
            if token.type == "link_open" and (address := _address(str(token.attrGet("href")), slug)):
                token.attrSet("href", address)
            linked = token.type == "link_open" or (linked and token.type != "link_close")
            named = "" if linked or token.type != "code_inline" else _address(token.content, slug)
            children += [_opening(named), token, Token("link_close", "a", -1)] if named else [token]
        if parent.children:
            parent.children = children


def _opening(address: str) -> Token:
    return Token("link_open", "a", 1, attrs={"href": address})


def _address(name: str, slug: str) -> str:
    """The page of a file that the document `slug` names, from where it lies or from docs/; empty for others."""
    found = _FILE.fullmatch(name.removeprefix("docs/"))
    if found is None:
        return ""
    near = posixpath.normpath(posixpath.join(posixpath.dirname(slug), found[1]))
    served = next((file for file in (near, found[1]) if file in _names()), "")
    return reverse("pages:doc", args=[served]) + (found[2] or "") if served else ""
