"""Who is asking, for code that runs behind a demand to be signed in."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from rest_framework.request import Request

from portal.accounts.models import User


def signed_in(request: HttpRequest | Request) -> User:
    """Return the user of a request that a decorator or permission has let through; else PermissionDenied."""
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied
    return user
