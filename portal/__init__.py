"""The web project. Importing it makes our Celery app the current one, so tasks can be sent by name."""

from portal.celery import app as celery_app

__all__ = ["celery_app"]
