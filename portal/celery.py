"""The Celery application: a doorbell only. The database is the queue (docs/architecture.md)."""

import os
from pathlib import Path

from celery import Celery
from celery.signals import import_modules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def make_broker_folders() -> None:
    """Create the folders of the filesystem transport; a no-op for any other broker."""
    options = app.conf.broker_transport_options or {}
    for key in ("data_folder_in", "data_folder_out", "processed_folder", "control_folder"):
        if key in options:
            Path(options[key]).mkdir(parents=True, exist_ok=True)


@import_modules.connect(weak=False)
def _prepare_worker(**_: object) -> None:
    make_broker_folders()
