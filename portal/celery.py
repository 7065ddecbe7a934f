"""The Celery application: a doorbell only. The database is the queue (docs/architecture.md)."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")
TRANSPORT_ALIASES["filesystem"] = "portal.core.file_broker:Transport"

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
