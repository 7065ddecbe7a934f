"""How often an address may send a form that takes a password, and by what an address is known."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few(settings: Any) -> None:
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"sign": "3/h", "anon": "3/h"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}
    cache.clear()


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/login/", "/accounts/signup/", "/accounts/password/", "/accounts/password/reset/", "/account/",
        "/admin/login/",
    ],
)  # fmt: skip
def test_guessing_ends_after_a_few_tries_and_reading_does_not(client: Client, path: str) -> None:
    if path in ("/accounts/password/", "/account/"):
        client.force_login(factories.UserFactory())
    sent = {"username": "ann", "password": "guess"}
    answers = [client.post(path, sent) for _ in range(4)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, False, True]
    assert 0 < int(answers[-1]["Retry-After"]) <= 3600
    assert "tried too often" in answers[-1].content.decode()
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(("proxies", "statuses"), [(0, [200, 200, 200, 429]), (1, [200, 200, 200, 200])])
def test_an_address_is_what_our_own_proxies_say_and_nothing_else(
    client: Client, settings: Any, proxies: int, statuses: list[int]
) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    factories.ProblemFactory()
    found = [
        client.get("/api/v1/targets/", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code
        for number in range(4)
    ]
    assert found == statuses
