"""What the portal makes of a hostile file and its result: every page, table and feed about it is looked at."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.evaluator.world import World

STARTS = (
    "/submissions/", "/boards/", "/boards/cpu4/", "/boards/cpu4/{problem}/", "/boards/cpu4/{problem}.csv",
    "/boards/cpu4/{problem}.json", "/boards/models/?target=cpu4", "/boards/models.csv?target=cpu4",
    "/boards/models.json?target=cpu4", "/boards/cpu4/records.atom", "/boards/export/scores.jsonl",
    "/problems/{problem}/", "/review/", "/status/", "/submissions/{id}/",
    "/submissions/{id}/live/", "/submissions/{id}/source/",
    "/api/v1/submissions/", "/api/v1/submissions/{id}/", "/api/v1/submissions/{id}/result/",
    "/admin/submissions/submission/",
)  # fmt: skip
HIDDEN = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08\x0b\x0c\x0e-\x1f]")
EDITED = re.compile(r"<textarea.*?</textarea>", re.DOTALL)
"""What an author edits must be what was sent, letter by letter."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
OWN_SCRIPTS = ("/static/", "/admin/jsi18n/")
INERT_SCRIPTS = ("application/json", "application/ld+json", "importmap")


class Portal:
    """A small installation of its own, in which results are stored and pages are read. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._world = World(folder)

    def __enter__(self) -> Portal:
        self._world.__enter__()
        self._world.ask("prepare")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._world.__exit__()

    def look(self, path: Path, problem: str, result: dict[str, Any], name: str) -> dict[str, list[str]]:
        """Clause -> what was found against it."""
        sent = self._world.ask("publish", path=str(path), problem=problem, result=ranked(result), name=name)
        found: dict[str, list[str]] = {
            "portal_5xx": [],
            "unescaped_markup": [],
            "csv_formula": [],
            "hidden_controls_in_page": [],
        }
        if sent["sent"] >= 500 or sent["run"] >= 500:
            found["portal_5xx"].append(f"upload answered {sent}")
        starts = [
            start.format(id=sent["id"] or "none", problem=problem)
            for start in STARTS
            if sent["id"] or "{id}" not in start
        ]
        for page in self._world.ask(
            "crawl", starts=starts, within=[sent["id"] or problem, "/boards/models/"]
        ):
            judge_page(page, found)
        return found


def ranked(result: dict[str, Any]) -> dict[str, Any]:
    """The result as an official one, so that it reaches the boards."""
    flags = [flag for flag in result.get("flags", []) if flag != "unranked_protocol"]
    return {**result, "protocol": "paper", "flags": flags}


def judge_page(page: dict[str, Any], found: dict[str, list[str]]) -> None:
    """Hold one answer against the clauses."""
    path, body = page["path"], page["body"]
    if page["status"] >= 500:
        found["portal_5xx"].append(f"{path} answered {page['status']}")
    if "html" in page["type"] or "svg" in page["type"]:
        found["unescaped_markup"] += [f"{path}: {what}" for what in active_markup(body)]
        if hidden := HIDDEN.search(EDITED.sub("", body)):
            found["hidden_controls_in_page"].append(
                f"{path}: U+{ord(hidden[0]):04X} in {body[hidden.start() - 40 : hidden.end()]!r}"
            )
    elif page["type"] == "text/csv":
        cells = [cell for row in csv.reader(io.StringIO(body)) for cell in row]
        found["csv_formula"] += [f"{path}: {cell[:60]!r}" for cell in cells if is_formula(cell)]


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would compute the cell."""
    if not cell.startswith(FORMULA):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


class _Active(HTMLParser):
    """Collects what a browser would run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        own = values.get("src", "").startswith(OWN_SCRIPTS)
        if tag == "script" and not own and values.get("type") not in INERT_SCRIPTS:
            self.found.append(f"a script element {values}")
        self.found += [f"{tag} with {name}" for name in values if name.startswith("on")]
        self.found += [
            f"{tag} to {value[:40]}"
            for value in values.values()
            if value.strip().lower().startswith("javascript:")
        ]


def active_markup(body: str) -> list[str]:
    """Scripts that are not ours, event handlers, and addresses that run code."""
    parser = _Active()
    parser.feed(body)
    return parser.found
