"""A forgotten password: a link by mail, once, that does not tell who has an account."""

import re
from typing import Any

import pytest
from django.test import Client

from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _mail(settings: Any) -> None:
    settings.SENDS_MAIL = True


def test_the_link_of_the_mail_sets_a_new_password_once(client: Client, mailoutbox: list[Any]) -> None:
    factories.UserFactory(username="ada", email="ada@example.org")
    assert "Forgot your password?" in client.get("/accounts/login/").content.decode()
    page = client.post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert "Look into your mail" in page.content.decode()
    link = re.search(r"http://[^/]+(/\S+)", mailoutbox[0].body)
    assert link is not None
    form = client.get(link[1], follow=True)
    answer = client.post(
        form.request["PATH_INFO"],
        {"new_password1": "correct horse 7", "new_password2": "correct horse 7"},
        follow=True,
    )
    assert "Your password is set" in answer.content.decode()
    assert client.login(username="ada", password="correct horse 7")
    assert "used before" in Client().get(link[1], follow=True).content.decode()


def test_an_unknown_address_gets_the_same_page_and_no_mail(client: Client, mailoutbox: list[Any]) -> None:
    page = client.post("/accounts/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "Look into your mail" in page.content.decode()
    assert mailoutbox == []


def test_a_site_without_mail_says_so(client: Client, settings: Any) -> None:
    settings.SENDS_MAIL = False
    assert "sends no mail" in client.get("/accounts/password/reset/").content.decode()


def test_a_nonsense_link_is_no_error(client: Client) -> None:
    for tail in ("x/y/", "MQ/set-password/", "MTk5OTk5OTk5OTk5OTk5OTk5OTk5OQ/a-b/"):
        answer = client.get(f"/accounts/password/reset/{tail}")
        assert answer.status_code == 200
        assert "Ask for another" in answer.content.decode()


def test_changing_the_password_says_so(client: Client) -> None:
    person = factories.UserFactory()
    client.force_login(person)
    new = {
        "old_password": "a-long-password",
        "new_password1": "correct horse 7",
        "new_password2": "correct horse 7",
    }
    assert "is changed" in client.post("/accounts/password/", new, follow=True).content.decode()
