from django.apps import AppConfig


class ProblemsConfig(AppConfig):
    """The catalogue's mirror in the database, its pages and API."""

    name = "problems"
