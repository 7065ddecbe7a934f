"""Development and the demo: no secret to set, static files served from where they lie."""

import secrets

from portal.settings.base import *  # noqa: F403
from portal.settings.base import PAGE_CACHE as _PAGE_CACHE
from portal.settings.base import SECRET_KEY as _SECRET_KEY
from portal.settings.base import STORAGES, VAR_DIR, env

DEBUG = env.bool("DEBUG", default=False)
PAGE_CACHE = _PAGE_CACHE and not DEBUG
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"])


def _own_secret() -> str:
    """Return the secret of this checkout, made on first use and kept readable by its owner only."""
    path = VAR_DIR / "secret_key"
    if not path.exists():
        fresh = VAR_DIR / f"secret_key.{secrets.token_hex(4)}"
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            path.hardlink_to(fresh)  # fails when another process was first: its secret stands
        except FileExistsError:
            pass
        fresh.unlink()
    return path.read_text()


SECRET_KEY = _SECRET_KEY or _own_secret()

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
