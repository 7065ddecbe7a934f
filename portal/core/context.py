"""Template context that every page needs."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, str]:
    """Return the site's name."""
    return {"portal_name": settings.SITE_NAME}
