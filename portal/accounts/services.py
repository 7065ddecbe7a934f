"""Writes about people and their tokens."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.accounts.models import ApiToken, Scope, User
from portal.core.errors import InvalidInput, NotFound, TooMany

MAX_LIVE_TOKENS = 20
LAST_USED_GRAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class NewToken:
    """A token just made. `key` is in no place but here: it cannot be shown again."""

    token: ApiToken
    key: str


def digest_of(key: str) -> str:
    """Return what is kept of a key. Keys are 32 random bytes, so a plain fast hash is right."""
    return hashlib.sha256(key.encode()).hexdigest()


@transaction.atomic
def create_token(
    *,
    by: User,
    name: str,
    scopes: Iterable[str] = (Scope.READ, Scope.SUBMIT),
    expires_at: datetime | None = None,
) -> NewToken:
    """Make a token for `by`. Raises InvalidInput for a name in use or an unknown scope."""
    wanted = sorted(set(scopes))
    if unknown := set(wanted) - set(Scope.values):
        raise InvalidInput(
            "token.scope_unknown", f"Unknown scope: {', '.join(sorted(unknown))}.", field="scopes"
        )
    if not wanted:
        raise InvalidInput("token.scope_missing", "Choose at least one scope.", field="scopes")
    name = name.strip()
    if not name:
        raise InvalidInput("token.name_missing", "Give the token a name.", field="name")
    if by.api_tokens.filter(revoked_at=None).count() >= MAX_LIVE_TOKENS:
        raise TooMany(
            "token.too_many", f"You have {MAX_LIVE_TOKENS} tokens. Revoke one first.", retry_after=0
        )
    prefix = f"pkb_{secrets.token_hex(4)}"
    key = f"{prefix}_{secrets.token_urlsafe(32)}"
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                user=by,
                name=name,
                prefix=prefix,
                digest=digest_of(key),
                scopes=wanted,
                expires_at=expires_at,
            )
    except IntegrityError as error:
        raise InvalidInput(
            "token.name_taken", "You have a token of this name. Choose another name.", field="name"
        ) from error
    return NewToken(token, key)


@transaction.atomic
def revoke_token(*, by: User, token_id: int) -> ApiToken:
    """Revoke one of `by`'s own tokens for good; revoking twice changes nothing. Raises NotFound."""
    token = by.api_tokens.filter(pk=token_id).first()
    if token is None:
        raise NotFound("token.not_found", "You have no such token.")
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    token.refresh_from_db()
    return token


def find_token(key: str) -> ApiToken | None:
    """Return the usable token with this key and an active owner, or None; notes when it was last used."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(key)).first()
    if token is None or not token.usable or not token.user.is_active:
        return None
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > LAST_USED_GRAIN:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
