from django.apps import AppConfig


class CoreConfig(AppConfig):
    """No models; shared plumbing."""

    name = "portal.core"
    label = "core"
