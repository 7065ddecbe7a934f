"""The evaluator's part of the portal: hosts, leases, attempts."""

from django.apps import AppConfig


class EvaluatorConfig(AppConfig):
    """Scheduling and running."""

    name = "evaluator"
    verbose_name = "evaluator"
