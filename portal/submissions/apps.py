from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """Entrants, runs and submissions."""

    name = "portal.submissions"
    label = "submissions"
