"""One site and one browser for all browser tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.e2e.site import ROOT, Site

ARTIFACTS = ROOT / "tests" / "artifacts"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A running site with the real catalogue and no evaluator yet."""
    with Site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium of the system."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-background-networking"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def artifacts() -> Path:
    """The folder that continuous integration keeps."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS


def _is_complaint(message: ConsoleMessage) -> bool:
    """Whether the browser says that something is wrong; that a form was refused (422) is in order."""
    return message.type in ("error", "warning") and "status of 422" not in message.text


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A fresh page; any message that the browser complains with fails the test."""
    context = browser.new_context(base_url=site.base, viewport={"width": 1440, "height": 900})
    fresh = context.new_page()
    complaints: list[str] = []
    fresh.on("console", lambda m: complaints.append(m.text) if _is_complaint(m) else None)
    fresh.on("pageerror", lambda error: complaints.append(str(error)))
    yield fresh
    context.close()
    assert complaints == []
