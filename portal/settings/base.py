"""What all environments share. Every environment variable of the product is read here, once.

Without any variable set, everything lives under `var/` of the checkout: SQLite in WAL mode, uploaded
sources, the cache, and a Celery broker made of folders. `PKB_VAR` moves that directory.
"""

from pathlib import Path
from typing import Any

import environ

from portal.submissions.states import State

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parents[2]
VAR_DIR = Path(env.str("PKB_VAR", default=str(BASE_DIR / "var"))).resolve()
VAR_DIR.mkdir(parents=True, exist_ok=True)  # SQLite does not create the directory of its file

# --- identity of the site -------------------------------------------------------------------------
DEBUG = False
SECRET_KEY = env.str("SECRET_KEY", default="")
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
SITE_NAME = env.str("PKB_SITE_NAME", default="ParallelKernelBench")

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "csp",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "portal.core",
    "portal.accounts",
    "problems",
    "portal.submissions",
    "portal.pages",
    "evaluator",
    "leaderboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "portal.core.middleware.RequestIdMiddleware",
    "portal.core.middleware.BodyLimitMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "leaderboard.page_cache.PageCacheMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.pages.middleware.RefusalMiddleware",
    "portal.core.middleware.NulMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.core.context.site",
            ]
        },
    }
]

# --- data -----------------------------------------------------------------------------------------
DATABASES: dict[str, Any] = {
    "default": env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'db.sqlite3'}")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # IMMEDIATE takes the write lock at BEGIN, so count-then-insert (quota) is safe on SQLite too.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000",
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=60)

CACHES = {
    "default": env.cache_url("CACHE_URL", default=f"filecache://{VAR_DIR / 'cache'}"),
    # Public pages, keyed by the board version: processes that do not share it still never show an old page.
    "pages": env.cache_url("CACHE_URL", default="locmemcache://pages"),
}
# What a process answered last, before it asks the cache that processes share.
CACHES["near"] = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "near"}
CACHES["near"]["OPTIONS"] = {"MAX_ENTRIES": 100}
if CACHES["pages"]["BACKEND"].endswith("LocMemCache"):
    CACHES["pages"]["OPTIONS"] = {"MAX_ENTRIES": 500}
    CACHES["near"] = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
DATA_LICENCE = env.str(
    "PKB_DATA_LICENCE", default="none named by the operator: the figures are facts; sources are not included"
)
SYNTHETIC_ROWS = True  # `seed_board`; never in production
PAGE_CACHE = env.bool("PKB_PAGE_CACHE", default=True)

S3_BUCKET = env.str("S3_BUCKET", default="")
_FILES: dict[str, Any] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {
        "location": str(VAR_DIR / "media"),
        "file_permissions_mode": 0o640,
        "directory_permissions_mode": 0o750,
    },
}
if S3_BUCKET:
    _FILES = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": env.str("S3_ENDPOINT_URL", default="") or None,
            "region_name": env.str("S3_REGION", default="") or None,
            "access_key": env.str("S3_ACCESS_KEY", default="") or None,
            "secret_key": env.str("S3_SECRET_KEY", default="") or None,
            "default_acl": None,
            "file_overwrite": False,
            "querystring_expire": 60,
        },
    }
STORAGES: dict[str, Any] = {
    "default": _FILES,
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

STATIC_URL = "/static/"
STATIC_ROOT = env.str("STATIC_ROOT", default=str(VAR_DIR / "staticfiles"))
STATICFILES_DIRS = [BASE_DIR / "static"]

# --- doorbell -------------------------------------------------------------------------------------
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://localhost/")
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {}
if CELERY_BROKER_URL.startswith("filesystem"):
    _BROKER = VAR_DIR / "broker"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_BROKER / "queue"),
        "data_folder_out": str(_BROKER / "queue"),  # one folder: what is sent is what is read
        "processed_folder": str(_BROKER / "processed"),
        "control_folder": str(_BROKER / "control"),
        "store_processed": False,
        "polling_interval": 0.05,
    }
    for _folder in ("queue", "processed", "control"):
        (_BROKER / _folder).mkdir(parents=True, exist_ok=True)  # kombu expects them to be there
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_SERIALIZER = "json"
CELERY_TIMEZONE = "UTC"
DOORBELL_EXPIRES_S = 120  # a ring nobody heard for two minutes is stale: the ticker rings again

# --- evaluator hosts ------------------------------------------------------------------------------
# Shorter only in tests: three missed heartbeats cost a host its lease (docs/architecture.md).
EVALUATOR_HEARTBEAT_S = env.float("PKB_HEARTBEAT_S", default=15.0)
EVALUATOR_LEASE_S = env.float("PKB_LEASE_S", default=45.0)
EVALUATOR_TICK_S = env.float("PKB_TICK_S", default=30.0)
EVALUATOR_WATCH_S = env.float("PKB_WATCH_S", default=1.0)  # how soon a cancelled run is noticed
PKB_JUDGE = env.str("PKB_JUDGE", default="evaluator.harness.judge.Judge")

# --- rules of the door ----------------------------------------------------------------------------
SUBMIT_MAX_BYTES = 1024 * 1024
SUBMIT_MAX_QUEUED = env.int("PKB_MAX_QUEUED", default=20)
SUBMIT_MAX_BATCH = env.int("PKB_MAX_BATCH", default=300)  # waiting in the batch lane, three runs of 87
SUBMIT_MAX_PER_HOUR = env.int("PKB_MAX_PER_HOUR", default=120)
REQUEST_MAX_BYTES = 20 * 1024 * 1024  # larger bodies are refused before they are read
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
DATA_UPLOAD_MAX_NUMBER_FILES = 4
LONG_POLL_MAX_S = 25

# --- people ---------------------------------------------------------------------------------------
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
_VALIDATION = "django.contrib.auth.password_validation."
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": _VALIDATION + "UserAttributeSimilarityValidator"},
    {"NAME": _VALIDATION + "MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": _VALIDATION + "CommonPasswordValidator"},
    {"NAME": _VALIDATION + "NumericPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 4 * 3600
EMAIL_URL = env.str(
    "EMAIL_URL", default=""
)  # such as smtp+tls://user:password@host:587; empty: no mail is sent
SENDS_MAIL = bool(EMAIL_URL)
if SENDS_MAIL:
    globals().update(env.email_url("EMAIL_URL"))
else:
    EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
DEFAULT_FROM_EMAIL = env.str("PKB_MAIL_FROM", default="portal@localhost")
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "pages:my_submissions"
LOGOUT_REDIRECT_URL = "pages:home"
CSRF_FAILURE_VIEW = "portal.pages.views.csrf_failure"

# --- API ------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "portal.core.parsers.JSONParser",
        "portal.core.parsers.MultiPartParser",
    ],
    "DEFAULT_PAGINATION_CLASS": "portal.core.pagination.CursorPages",
    "PAGE_SIZE": 50,
    "DEFAULT_FILTER_BACKENDS": ["portal.core.filtering.QueryFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["portal.core.throttles.ScopeThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "anon": env.str("PKB_RATE_ANON", default="120/min"),
        "user": env.str("PKB_RATE_USER", default="600/min"),
        "submit": env.str("PKB_RATE_SUBMIT", default="60/min"),
        "sign": env.str("PKB_RATE_SIGN", default="20/min"),  # forms that take a password or make an account
    },
    # How many proxies stand before us and add to X-Forwarded-For; 0: the header is anybody's word, and not read.
    "NUM_PROXIES": env.int("PKB_PROXIES", default=0),
    "EXCEPTION_HANDLER": "portal.core.problem_json.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "ParallelKernelBench portal",
    "DESCRIPTION": "Submit multi-GPU kernels, watch them being judged, read the boards.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",  # groups are named by what follows it
    "TAGS": [
        {"name": "submissions", "description": "Send a file, watch it, read its result, appeal."},
        {"name": "runs", "description": "Runs of models, and many files at once."},
        {"name": "quota", "description": "What may still be sent today."},
        {"name": "problems", "description": "The catalogue and its prompts."},
        {"name": "targets", "description": "The hardware that scores are comparable on."},
        {"name": "leaderboards", "description": "Boards and imported results."},
    ],
    # Single and listed submissions share it; left alone, clients would get a name made from a hash.
    "ENUM_NAME_OVERRIDES": {"SubmissionStateEnum": [(state.value, state.value) for state in State]},
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- browser security -----------------------------------------------------------------------------
# The second style hash is that of the empty string: it admits Plotly's own empty <style> element and
# nothing else.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'", "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

# --- language, time, logs -------------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "portal.core.logging.JsonFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
}
