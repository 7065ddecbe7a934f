"""What all tests share: what is absent is skipped with its reason, and under CI nothing may be."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import caches
from rest_framework.test import APIClient

from tests.times import pytest_configure, pytest_terminal_summary  # noqa: F401 (hooks)


def _postgres_is_absent() -> str:
    from django.db import connection

    return "" if connection.vendor == "postgresql" else "DATABASE_URL names no PostgreSQL"


def _redis_is_absent() -> str:
    return "" if os.environ.get("REDIS_URL") or shutil.which("redis-server") else "no redis-server here"


def _browser_is_absent() -> str:
    return "" if shutil.which("chromium") else "no chromium here"


def _gpu_is_absent() -> str:
    return "" if shutil.which("nvidia-smi") else "no NVIDIA GPU here"


NEEDS: dict[str, Callable[[], str]] = {
    "postgres": _postgres_is_absent,
    "redis": _redis_is_absent,
    "browser": _browser_is_absent,
    "gpu": _gpu_is_absent,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--database-only`: a second pass on another database repeats nothing that asks no database."""
    parser.addoption("--database-only", action="store_true", help="only tests that use the database")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--database-only` excludes; long files first, or one process ends long after the other."""
    long = {item.path for item in items if any(map(item.get_closest_marker, ("processes", "slow")))}
    items.sort(key=lambda item: item.path not in long)
    if not config.getoption("--database-only"):
        return
    config.hook.pytest_deselected(items=[item for item in items if not _asks_the_database(item)])
    items[:] = [item for item in items if _asks_the_database(item)]


def _asks_the_database(item: pytest.Item) -> bool:
    named = {"db", "transactional_db"}.intersection(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(named)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here; under CI say that as a failure."""
    for marker, is_absent in NEEDS.items():
        if item.get_closest_marker(marker) and (why := is_absent()):
            if os.environ.get("CI"):
                pytest.fail(f"nothing may be skipped under CI: {why}", pytrace=False)
            pytest.skip(why)


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles count in the cache, pages are kept in one: every test begins with both empty."""
    for found in caches.all(initialized_only=False):
        found.clear()
    yield
    for found in caches.all(initialized_only=False):
        found.clear()


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets whose doorbell was rung."""
    heard: list[str] = []
    monkeypatch.setattr("portal.submissions.doorbell.ring", lambda target: heard.append(target) or True)
    return heard


@pytest.fixture
def api() -> Callable[..., APIClient]:
    """Make an API client that carries a token of `user`, or none."""
    from tests.factories import token

    def client(user: Any = None, **fields: Any) -> APIClient:
        made = APIClient()
        if user is not None:
            made.credentials(HTTP_AUTHORIZATION=f"Token {token(user, **fields)}")
        return made

    return client
