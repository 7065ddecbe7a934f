"""Every page in light and dark, on a phone and on a desk: axe finds nothing serious, nothing sticks out."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.site import ROOT, Site, serious

pytestmark = [pytest.mark.browser, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(600)]

AXE = (ROOT / "tests" / "vendor" / "axe-core-4.14.1" / "axe.min.js").read_text()
PASSWORD = "correct horse battery"
WIDTHS = (360, 1440)
PICTURES = ((360, "dark"), (1440, "light"))
COLOURS = ", runOnly: ['color-contrast', 'link-in-text-block']"
"""The other scheme is the same document in other colours: only the rules that look at colours ask again."""

# Rows as the judge and people would leave them: the factories write them into the running site.
SETUP = """
from tests import factories
from tests.portal.test_profile import SEEN
from portal.accounts.models import User
from portal.submissions.models import Entrant
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
from evaluator.models import Attempt
from leaderboard.bulk import unchecked
from leaderboard.models import Score
from leaderboard.synthetic import Seeder
from portal.submissions.models import Submission
with unchecked(Submission, Attempt, Score):
    seeder = Seeder()
    runs = [seeder.run(seeder.model(n), n, agentic=n == 1, verified=n < 3) for n in range(4)]
    for run in runs:
        seeder.fill(run, common["target"], 1, steps=3 if run.harness == "agentic" else 1)
    seeder.write()
    seeder.finish()
Entrant.objects.filter(pk=runs[1].entrant_id).update(name="W" * 115)  # people choose names, and need no spaces
rows.append(factories.submission(author, run=runs[1], sample=99, **common))
own = factories.model_run(author)
factories.judged(author, run=own, **common)
print(",".join([*(f"/submissions/{row.pk}/" for row in rows), f"/runs/{own.pk}/"]))
print(f"/boards/models/{runs[1].entrant.slug}/,/boards/compare/?run={runs[0].pk}&run={runs[1].pk}")
"""

# What waits for staff: an appeal against a disqualification, and a flag.
STAFF = """
from tests import factories
from portal.submissions import standing
from problems.models import Problem, Target
boss = factories.UserFactory(username="boss", is_staff=True)
boss.set_password("correct horse battery"); boss.save()
common = {"problem": Problem.objects.get(slug="allgather"), "target": Target.objects.get(slug="cpu4")}
gone, flagged = factories.judged(**common), factories.judged(**common)
standing.disqualify(by=boss, submission=gone, reason="Reads what is not its own.")
standing.appeal(by=gone.author, submission=gone, text="It does not.")
flagged.attempts.update(triage=[{"code": "opens_sockets", "line": 3, "file": "solution.py", "count": 2,
    "sentence": "Opens network connections of its own.", "weight": "review"}])
print(f"/submissions/{gone.pk}/,/submissions/{flagged.pk}/")
"""

OPEN = ["/", "/problems/", "/problems/map/", "/problems/allreduce/", "/docs/", "/docs/participants/", "/docs/api/",
        "/status/", "/accounts/login/", "/accounts/signup/", "/boards/", "/boards/cpu4/", "/boards/cpu4/allreduce/",
        "/boards/models/?runs=community", "/boards/taxonomy/", "/boards/published/", "/embed/models/",
        "/nothing-here/"]  # fmt: skip
OWN = ["/submit/", "/runs/", "/runs/new/", "/submissions/", "/accounts/tokens/", "/accounts/password/"]


@pytest.fixture(scope="module")
def made(site: Site) -> list[list[str]]:
    """Addresses of the author's submissions, and of boards that name what was made."""
    return [line.split(",") for line in site.python(SETUP).strip().splitlines()[-2:]]


def findings(page: Page, rules: str = "") -> list[str]:
    """What axe finds serious now; `rules` restricts it to some."""
    options = f"{{resultTypes: ['violations']{rules}}}"
    return serious(page.evaluate(f"axe.run(document, {options})")["violations"])


def look(page: Page, path: str, picture: Path) -> list[str]:
    """Load a page once and look at it in both schemes on a phone and on a desk; a picture of either kind."""
    found = []
    page.goto(path)
    page.evaluate(AXE)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        inner = page.evaluate("document.documentElement.scrollWidth")
        if inner > width:
            found.append(f"sticks out: {inner} px on {width} px")
        for scheme, rules in (("light", ""), ("dark", COLOURS)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            if (width, scheme) in PICTURES:
                page.screenshot(path=f"{picture}-{width}-{scheme}.png", full_page=True)
            found += [f"{line} on {width} px, {scheme}" for line in findings(page, rules)]
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.emulate_media(color_scheme="light")
    return [f"{path}: {line}" for line in found]


def test_no_page_has_a_serious_finding(
    browser: Browser, site: Site, made: list[list[str]], artifacts: Path
) -> None:
    rows, boards = made
    context = browser.new_context(
        base_url=site.base, color_scheme="light", viewport={"width": WIDTHS[0], "height": 900}
    )
    page = context.new_page()
    found = []
    for path in [*OPEN, *boards]:
        found += look(page, path, artifacts / _name(path))
    log_in(page, "walker")
    for path in OWN:
        found += look(page, path, artifacts / _name(path))
    for number, path in enumerate(rows):
        found += look(page, path, artifacts / f"submission-{number}")
    context.close()
    assert found == []


def test_no_page_of_staff_has_a_serious_finding(browser: Browser, site: Site, artifacts: Path) -> None:
    paths = site.python(STAFF).strip().splitlines()[-1].split(",")
    context = browser.new_context(base_url=site.base, viewport={"width": WIDTHS[0], "height": 900})
    page = context.new_page()
    log_in(page, "boss")
    found = [line for path in ("/review/", *paths) for line in look(page, path, artifacts / _name(path)[:20])]
    page.goto("/review/")
    wraps = page.evaluate(
        "[...document.querySelectorAll('textarea')].map(t => getComputedStyle(t).whiteSpace)"
    )
    context.close()
    assert found == []
    assert set(wraps) == {"pre-wrap"}, "an answer is prose: its lines wrap"


def log_in(page: Page, name: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login/" not in url)


def _name(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path).strip("-")[:60] or "home"


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


def test_a_wide_table_has_the_window_and_is_not_cut(
    browser: Browser, site: Site, made: list[list[str]]
) -> None:
    context = browser.new_context(base_url=site.base, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    log_in(page, "walker")
    hidden = "e => e.scrollWidth - e.clientWidth"
    for path in ("/submissions/", "/docs/problems/"):
        page.goto(path)
        assert page.locator(".table-scroll").first.evaluate(hidden) == 0, path
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    figure = page.locator(".prose tbody tr").first.locator("td").nth(3).bounding_box()
    assert figure is not None
    assert figure["x"] < WIDTHS[0], "a phone shows more than the names of the rows"
    context.close()


def test_the_schema_is_no_wider_than_a_phone_open_or_not(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.base, viewport={"width": WIDTHS[0], "height": 900})
    page = context.new_page()
    page.goto("/api/schema/browse/")
    arrows = page.locator(".opblock-control-arrow")
    arrows.first.wait_for()
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) == WIDTHS[0]
    for arrow in arrows.all()[:4]:
        arrow.click()
    page.locator(".opblock-body").nth(3).wait_for()
    assert page.evaluate(wide) == WIDTHS[0]
    context.close()
