"""Documents from docs/, docs/measurements/ and the checkout's root as safe HTML, and the data they quote."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path

import nh3
from django.conf import settings
from django.urls import reverse
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

from problems.registry import all_problems

FIRST = ("participants", "api", "judge", "problems")
"""What most readers look for heads the menu; every other file of docs/ follows by name, measurements last."""
FOLDER = "measurements"
OF_THE_ROOT = {"security": "SECURITY.md", "contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
"""Documents that lie beside docs/, by the name they are served under."""
EXAMPLE_SITE = "https://your-portal.example"
"""How documents write the address of a site, which they cannot know."""
DATA_TYPES = {".json": "application/json", ".txt": "text/plain; charset=utf-8"}
"""What measurements quote, by ending."""
SENDERS, OPERATORS, REST = (
    "For those who send files",
    "For operators and developers",
    "Measurements and the rest",
)
ABOUT = {
    "participants": (SENDERS, "What a submission is, what is judged, how to read a result. Start here."),
    "api": (SENDERS, "Every call with examples: sending, waiting, campaigns, errors."),
    "judge": (SENDERS, "How a score comes about, what it means and what it does not claim."),
    "problems": (SENDERS, "All problems with sizes, rooflines and what their references take."),
    "samples": (SENDERS, "Our CUDA files after the case studies of the paper."),
    "deploy": (OPERATORS, "From an empty server to a site: settings, database, proxy, backup."),
    "gpu-hosts": (OPERATORS, "From a bare machine with cards to a host that takes work."),
    "architecture": (OPERATORS, "How the code is laid out, and how a submission travels through it."),
    "security": (OPERATORS, "What each layer around a stranger's file stops, and what none stops."),
    "contributing": (OPERATORS, "How the code is written and tested."),
    "changelog": (OPERATORS, "What there is, by part, and what changed."),
}
"""Which part of the list a document stands in, and a line on what it is."""

_TAGS = nh3.ALLOWED_TAGS
_ATTRIBUTES = {**nh3.ALLOWED_ATTRIBUTES, **{f"h{n}": {"id"} for n in range(1, 5)}, "code": {"class"}}
_LANGUAGE = re.compile(r"language-[a-z]+")
_FILE = re.compile(r"((?:(?:\w+|\.\.)/)?[\w-]+)(\.md|\.json|\.txt)(#.*)?")


@dataclass(frozen=True)
class Document:
    """One document; `html` has been through the sanitiser."""

    slug: str
    title: str
    html: str

    def served_at(self, address: str) -> Document:
        """The same with this site's address where commands name an example; it is kept for all addresses once."""
        return replace(self, html=self.html.replace(EXAMPLE_SITE, escape(address)))


def titles() -> list[tuple[str, str]]:
    """Return (slug, title) of the documents there are."""
    found = (load(slug) for slug in _names())
    return [(document.slug, document.title) for document in found if document]


@dataclass(frozen=True)
class Entry:
    """One line of the list of documents."""

    slug: str
    title: str
    about: str


def contents() -> dict[str, list[Entry]]:
    """Return the documents by part of the list; one without a line of its own is among the rest."""
    parts: dict[str, list[Entry]] = {SENDERS: [], OPERATORS: [], REST: []}
    for slug, title in titles():
        part, about = ABOUT.get(slug, (REST, ""))
        parts[part].append(Entry(slug, title, about))
    return parts


def data_file(name: str) -> tuple[bytes, str] | None:
    """Return content and type of a file that measurements quote; None for any other name."""
    path = _data().get(name)
    return (path.read_bytes(), DATA_TYPES[path.suffix]) if path else None


def _data() -> dict[str, Path]:
    """The files there are; a link may lead out of the folder, so none is one."""
    found = sorted((_docs() / FOLDER).glob("*"))
    return {it.name: it for it in found if it.suffix in DATA_TYPES and it.is_file() and not it.is_symlink()}


def _docs() -> Path:
    return Path(settings.BASE_DIR) / "docs"


def _names() -> list[str]:
    """The files there are, without their ending and in the order of the menu."""
    names = _files_in(_docs())
    first = sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    root = [slug for slug in OF_THE_ROOT if _path(slug).is_file()]
    return first + root + [f"{FOLDER}/{name}" for name in _files_in(_docs() / FOLDER)]


def _path(slug: str) -> Path:
    if slug in OF_THE_ROOT:
        return Path(settings.BASE_DIR) / OF_THE_ROOT[slug]
    return _docs() / f"{slug}.md"


def _files_in(folder: Path) -> list[str]:
    """Names of documents; a folder of such a name, or a link that leads nowhere (an editor's lock), is none."""
    return sorted(path.stem for path in folder.glob("*.md") if path.is_file())


def load(slug: str) -> Document | None:
    """Return a document, None when there is none of this name."""
    if slug not in _names():
        return None
    path = _path(slug)
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
    """Let links to files of ours, and their bare names in code, lead to where they are served."""
    for parent in tokens:
        linked, children = False, []
        for token in parent.children or []:
            if token.type == "link_open" and (address := _address(str(token.attrGet("href")), slug)):
                token.attrSet("href", address)
            linked = token.type == "link_open" or (linked and token.type != "link_close")
            named = "" if linked or token.type != "code_inline" else _named(token.content, slug)
            children += [_opening(named), token, Token("link_close", "a", -1)] if named else [token]
        if parent.children:
            parent.children = children


def _opening(address: str) -> Token:
    return Token("link_open", "a", 1, attrs={"href": address})


def _named(text: str, slug: str) -> str:
    """Where a name in code leads: a file's page, or a problem's in the list of them; empty for other words."""
    if slug == "problems" and any(text == problem.slug for problem in all_problems()):
        return reverse("pages:problem", args=[text])
    return _address(text, slug)


def _address(name: str, slug: str) -> str:
    """Where a file is served that the document `slug` names, from where it lies or from docs/; empty for others."""
    found = _FILE.fullmatch(name.removeprefix("docs/"))
    if found is None:
        return ""
    stem, ending, part = found.groups()
    near = posixpath.normpath(posixpath.join(posixpath.dirname(slug), stem))
    if ending != ".md":
        data = {f"{FOLDER}/{file}" for file in _data()}
        served = next((file for file in (near + ending, stem + ending) if file in data), "")
        return reverse("pages:measured", args=[posixpath.basename(served)]) if served else ""
    root = next((it for it, file in OF_THE_ROOT.items() if file == posixpath.basename(stem) + ending), "")
    served = next((file for file in (near, stem, root) if file in _names()), "")
    return reverse("pages:doc", args=[served]) + (part or "") if served else ""
