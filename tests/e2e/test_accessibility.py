"""Every page in light and dark, on a phone and on a desk: axe finds nothing serious, nothing sticks out."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.site import ROOT, Site, serious

pytestmark = [pytest.mark.browser, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(600)]

AXE = (ROOT / "tests" / "vendor" / "axe-core-4.14.1" / "axe.min.js").read_text()
PASSWORD = "correct horse battery"

# Rows as the judge and people would leave them: the factories write them into the running site.
SETUP = """
from tests import factories
from tests.portal.test_profile import SEEN
from portal.accounts.models import User
from problems.models import Problem, Target
author = factories.UserFactory(username="walker")
author.set_password("correct horse battery"); author.save()
common = {"problem": Problem.objects.get(slug="allreduce"), "target": Target.objects.get(slug="cpu4")}
wrong = {"ranks": [{"rank": r, "ok": r != 1, **({"output": "out", "first_wrong": {"index": [0, 17],
    "expected": "-1.625", "got": "0.40625", "wrong": 2048, "total": 2048}} if r == 1 else {})} for r in range(4)]}
hang = {"stacks": [{"rank": r, "text": "File solution.py, line 2 in solution"} for r in range(4)], "line": 2}
rows = [
    factories.judged(author, **common),
    factories.judged(author, "incorrect", code="incorrect.value", result=wrong, **common),
    factories.judged(author, "timeout", code="timeout.deadlock", result=hang, **common),
    factories.submission(author, state="running", stage="timing", **common),
    factories.profiled(author, result=SEEN, **common),
]
factories.token(author, name="laptop")
from leaderboard.synthetic import Seeder
seeder = Seeder()
runs = [seeder.run(seeder.model(n), n, agentic=n == 1, verified=n < 3) for n in range(4)]
for run in runs:
    seeder.fill(run, common["target"], 1, steps=3 if run.harness == "agentic" else 1)
print(",".join(f"/submissions/{row.pk}/" for row in rows))
print(f"/boards/models/{runs[1].entrant.slug}/,/boards/compare/?run={runs[0].pk}&run={runs[1].pk}")
"""

OPEN = ["/", "/problems/", "/problems/map/", "/problems/allreduce/", "/docs/", "/docs/participants/", "/docs/api/",
        "/status/", "/accounts/login/", "/accounts/signup/", "/boards/", "/boards/cpu4/", "/boards/cpu4/allreduce/",
        "/boards/models/?runs=community", "/boards/taxonomy/", "/boards/published/", "/embed/models/",
        "/nothing-here/"]  # fmt: skip
OWN = ["/submit/", "/runs/new/", "/submissions/", "/accounts/tokens/", "/accounts/password/"]


@pytest.fixture(scope="module")
def made(site: Site) -> list[list[str]]:
    """Addresses of the author's submissions, and of boards that name what was made."""
    return [line.split(",") for line in site.python(SETUP).strip().splitlines()[-2:]]


def problems_of(page: Any, path: str, width: int) -> list[str]:
    found = serious(page.evaluate(AXE + "; axe.run(document, {resultTypes: ['violations']})")["violations"])
    inner = page.evaluate("document.documentElement.scrollWidth")
    if inner > width:
        found.append(f"sticks out: {inner} px on {width} px")
    return [f"{path}: {line}" for line in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_no_page_has_a_serious_finding(
    browser: Browser, site: Site, made: list[list[str]], artifacts: Path, scheme: Any, width: int
) -> None:
    rows, boards = made
    context = browser.new_context(
        base_url=site.base, color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    found = []
    anonymous = [*OPEN, *boards]
    for paths in (anonymous, [*OWN, *rows]):
        for path in paths:
            page.goto(path)
            name = re.sub(r"[^a-z0-9]+", "-", path).strip("-")[:60] or "home"
            if path in rows:
                name = f"submission-{rows.index(path)}"
            page.screenshot(path=artifacts / f"{name}-{width}-{scheme}.png", full_page=True)
            found += problems_of(page, path, width)
        page.goto("/accounts/login/")
        if paths is anonymous:
            page.get_by_label("Username").fill("walker")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("main").get_by_role("button", name="Log in").click()
    context.close()
    assert found == []


def test_the_keyboard_finds_the_content_first(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.base)
    page = context.new_page()
    page.goto("/problems/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "f-q"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2
    context.close()
