"""Tests: nothing outside the process unless a test asks for it (DATABASE_URL may name PostgreSQL)."""

import os
import tempfile

from portal.settings.base import *  # noqa: F403
from portal.settings.base import DATABASES, REST_FRAMEWORK, STORAGES, env

SECRET_KEY = "only-for-tests"  # noqa: S105
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file, as in the product: in memory, connections of several threads lock and see each other's
    # work in other ways than with a write-ahead log, and tests of races would test something else.
    DATABASES["default"]["TEST"] = {"NAME": f"{tempfile.gettempdir()}/pkb-test-{os.getpid()}.sqlite3"}

_LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
CACHES = {
    "default": {"BACKEND": _LOCMEM},
    "pages": {"BACKEND": _LOCMEM, "LOCATION": "pages"},
    "near": {"BACKEND": _LOCMEM, "LOCATION": "near"},
}
STORAGES["default"] = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="memory://")
CELERY_BROKER_TRANSPORT_OPTIONS = {}

REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] = {
    "anon": "100000/min",
    "user": "100000/min",
    "submit": "100000/min",
    "sign": "100000/min",
}
LONG_POLL_MAX_S = 1
