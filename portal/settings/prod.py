"""Production: refuses to start while a secret is missing."""

from django.core.exceptions import ImproperlyConfigured

from portal.settings.base import *  # noqa: F403
from portal.settings.base import ALLOWED_HOSTS, CELERY_BROKER_URL, REST_FRAMEWORK, SECRET_KEY, env

if len(SECRET_KEY) < 40:
    raise ImproperlyConfigured("SECRET_KEY must be set to at least 40 random characters.")
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS must name the host names the site is served on.")
if CELERY_BROKER_URL.startswith("filesystem") and not env.bool("PKB_SINGLE_MACHINE", default=False):
    raise ImproperlyConfigured(
        "CELERY_BROKER_URL must name Redis or RabbitMQ; the filesystem transport serves one machine "
        "only. Set PKB_SINGLE_MACHINE=1 if web and evaluator really share this machine."
    )

SYNTHETIC_ROWS = False
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
REST_FRAMEWORK["NUM_PROXIES"] = env.int("PKB_PROXIES", default=1)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=365 * 24 * 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
