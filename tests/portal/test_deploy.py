"""docs/deploy.md and what belongs to it: every setting is told, and its samples hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.submissions.uploads import MAX_FILES, MAX_TOTAL

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_SETTING = re.compile(r'env\.\w+\(\s*"(\w+)"')
_OF_HARNESS = re.compile(r'environ\.get\(\s*"(PKB_\w+)"')


def settings_read() -> set[str]:
    """Names of the environment variables that production and the judge read."""
    found = set()
    for name in ("base", "prod"):
        found |= set(_SETTING.findall((ROOT / "portal" / "settings" / f"{name}.py").read_text()))
    for path in (ROOT / "evaluator").rglob("*.py"):
        found |= set(_OF_HARNESS.findall(path.read_text()))
    return found


def test_every_setting_is_in_the_table() -> None:
    told = (DOCS / "deploy.md").read_text().partition("## All settings")[2]
    assert len(settings_read()) > 30
    assert {name for name in settings_read() if f"`{name}`" not in told} == set()


@pytest.mark.parametrize("guide", ["deploy.md", "gpu-hosts.md"])
def test_the_settings_of_the_samples_exist(guide: str) -> None:
    samples = (DOCS / guide).read_text().split("\n```\n")[1::2]
    named = {name for sample in samples for name in re.findall(r"^([A-Z0-9_]{4,})=", sample, re.MULTILINE)}
    assert {"SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "CELERY_BROKER_URL"} <= named
    assert named <= settings_read() | {"DJANGO_SETTINGS_MODULE"}


def test_the_proxy_of_the_sample_lets_the_largest_zip_through() -> None:
    sample = (DOCS / "deploy.md").read_text()
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m;", sample)
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", sample)
    assert int(mebibytes) << 20 > MAX_TOTAL
    assert int(seconds) >= 0.3 * MAX_FILES  # a file takes about 0.15 s
