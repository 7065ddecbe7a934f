from django.apps import AppConfig


class PagesConfig(AppConfig):
    """Composition root of the pages; no models."""

    name = "portal.pages"
    label = "pages"
