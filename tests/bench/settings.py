"""Production settings on this machine without TLS, for the benchmark of the boards only."""

import os
import secrets

os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(48))
os.environ.setdefault("ALLOWED_HOSTS", "127.0.0.1")
os.environ.setdefault("PKB_SINGLE_MACHINE", "1")
os.environ.setdefault("SECURE_SSL_REDIRECT", "0")

from portal.settings.prod import *  # noqa: F403

ROOT_URLCONF = "tests.bench.urls"
# Built pages name hashed files of `collectstatic`; the measurement needs none of them.
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}  # noqa: F405
