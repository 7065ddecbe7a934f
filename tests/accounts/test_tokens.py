"""Tokens: shown once, kept hashed, scoped, ending, revocable. Signing up and in."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, User
from portal.accounts.services import MAX_LIVE_TOKENS, create_token, find_token, revoke_token
from portal.core.errors import InvalidInput, NotFound, TooMany
from tests import factories

pytestmark = pytest.mark.django_db


def test_only_a_hash_is_kept() -> None:
    made = create_token(by=factories.UserFactory(), name="laptop")
    row = ApiToken.objects.get()
    assert row.digest == hashlib.sha256(made.key.encode()).hexdigest()
    assert made.key.startswith(row.prefix)
    values = [str(value) for value in ApiToken.objects.values().get().values()]
    assert made.key not in values
    assert len(made.key) > 50


def test_a_token_is_found_until_it_ends_is_revoked_or_its_owner_is_closed() -> None:
    user = factories.UserFactory()
    made = create_token(by=user, name="a", expires_at=timezone.now() + timedelta(days=1))
    assert find_token(made.key) == made.token
    assert ApiToken.objects.get().last_used_at is not None
    assert find_token(made.key + "x") is None
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert find_token(made.key) is None
    ApiToken.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    assert find_token(made.key) is None
    User.objects.update(is_active=True)
    revoke_token(by=user, token_id=made.token.pk)
    assert find_token(made.key) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": " "}, "token.name_missing"),
        ({"name": "a"}, "token.name_taken"),
        ({"name": "b", "scopes": ["root"]}, "token.scope_unknown"),
        ({"name": "b", "scopes": []}, "token.scope_missing"),
    ],
)
def test_bad_tokens_are_refused(fields: dict[str, Any], code: str) -> None:
    user = factories.UserFactory()
    create_token(by=user, name="a")
    with pytest.raises(InvalidInput) as caught:
        create_token(by=user, **fields)
    assert caught.value.code == code
    assert user.api_tokens.count() == 1


def test_a_revoked_name_can_be_used_again_and_there_is_a_limit() -> None:
    user = factories.UserFactory()
    revoke_token(by=user, token_id=create_token(by=user, name="a").token.pk)
    for n in range(MAX_LIVE_TOKENS):
        create_token(by=user, name="a" if n == 0 else f"n{n}")
    with pytest.raises(TooMany):
        create_token(by=user, name="one more")


def test_revoking_is_for_the_owner() -> None:
    made = create_token(by=factories.UserFactory(), name="a")
    with pytest.raises(NotFound):
        revoke_token(by=factories.UserFactory(), token_id=made.token.pk)


def test_the_page_shows_the_key_once(client: Client) -> None:
    client.force_login(factories.UserFactory())
    made = client.post("/accounts/tokens/", {"name": "ci", "scopes": ["read"], "lifetime": "30"})
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    key = made.context["made"].key
    assert key in made.content.decode()
    token = ApiToken.objects.get()
    assert (token.scopes, token.expires_at is not None) == (["read"], True)
    again = client.get("/accounts/tokens/").content.decode()
    assert key not in again
    assert token.prefix in again
    client.post(f"/accounts/tokens/{token.pk}/revoke/")
    assert token.prefix not in client.get("/accounts/tokens/").content.decode()


def test_an_expired_token_is_a_401(api: Callable[..., APIClient]) -> None:
    client = api(factories.UserFactory(), expires_at=timezone.now() - timedelta(days=1))
    assert client.get("/api/v1/quota/").status_code == 401


def test_signing_up_signs_in_and_goes_on(client: Client) -> None:
    fields = {"username": "ann", "password1": "correct horse battery", "password2": "correct horse battery"}
    response = client.post("/accounts/signup/", {**fields, "next": "/problems/"})
    assert (response.status_code, response["Location"]) == (302, "/problems/")
    assert User.objects.get().username == "ann"
    assert client.get("/submissions/").status_code == 200
    again = client.get("/accounts/signup/?next=/problems/")
    assert (again.status_code, again["Location"]) == (302, "/problems/")
    assert client.get("/accounts/signup/?next=//evil.example")["Location"] == "/submit/"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example",
        "javascript:alert(1)",
        "",
        "foo",
        "pages:home",
        "a.b",
        "../x",
        "?x",
    ],
)
def test_signing_up_never_leads_off_the_site(client: Client, target: str) -> None:
    fields = {"username": "bob", "password1": "correct horse battery", "password2": "correct horse battery"}
    assert client.post("/accounts/signup/", {**fields, "next": target})["Location"] == "/submit/"
    assert client.get("/accounts/signup/", {"next": target})["Location"] == "/submit/"


@pytest.mark.parametrize(
    "change",
    [
        {"password1": "short", "password2": "short"},
        {"password2": "other"},
        {"username": "a b"},
        {"username": ""},
    ],
)
def test_a_bad_sign_up_says_what_is_wrong(client: Client, change: dict[str, str]) -> None:
    fields = {"username": "ann", "password1": "correct horse battery", "password2": "correct horse battery"}
    response = client.post("/accounts/signup/", {**fields, **change})
    assert response.status_code == 422
    assert "errorlist" in response.content.decode()
    assert not User.objects.exists()


def test_a_weak_password_that_is_not_repeated_is_told_of_both(client: Client) -> None:
    fields = {"username": "ann", "password1": "short", "password2": "other"}
    errors = client.post("/accounts/signup/", fields).context["form"].errors
    assert "too short" in str(errors["password1"])
    assert "match" in str(errors["password2"])


def test_production_hashes_passwords_with_argon2() -> None:
    from portal.settings import base

    assert base.PASSWORD_HASHERS[0].endswith("Argon2PasswordHasher")
