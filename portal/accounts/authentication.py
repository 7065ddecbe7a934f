"""`Authorization: Token …` for the API, and the scope a request needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.services import find_token

if TYPE_CHECKING:
    from rest_framework.views import APIView


class TokenAuthentication(BaseAuthentication):
    """Accept `Token <key>`. Another scheme is left to other classes; a bad token is a 401."""

    keyword = b"token"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the owner and the token, None when the header speaks of no token."""
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Send 'Authorization: Token <key>' with one key and no spaces in it.")
        try:
            key = parts[1].decode("ascii")
        except UnicodeDecodeError as error:
            raise AuthenticationFailed("A token has ASCII characters only.") from error
        token = find_token(key)
        if token is None:
            raise AuthenticationFailed(
                "This token is unknown, expired or revoked. Make a new one under API tokens."
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge, which makes a missing token a 401 and not a 403."""
        return 'Token realm="api"'


class TokenHasScope(BasePermission):
    """With a token: reading needs `read`, everything else `submit`. A browser session has both."""

    message = "This token lacks the scope that the request needs. Make one with it under API tokens."
    code = "token.scope_missing"

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Tell whether the token's scopes cover the method."""
        token = request.auth
        if not isinstance(token, ApiToken):
            return True
        needed = Scope.READ if request.method in SAFE_METHODS else Scope.SUBMIT
        return needed in token.scopes
