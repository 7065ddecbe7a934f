"""The evaluator's part of the portal: hosts, leases, attempts."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class EvaluatorConfig(AppConfig):
    """Scheduling and running."""

    name = "evaluator"
    verbose_name = "evaluator"

    def ready(self) -> None:
        """Listen to our own message: flags and noise are noted beside the boards, never in their way."""
        from evaluator.signals import attempt_scored

        attempt_scored.connect(_on_attempt_scored, dispatch_uid="evaluator.note_attempt")


def _on_attempt_scored(attempt: Any, **_: object) -> None:
    from evaluator import services

    services.record_triage(attempt=attempt)
    services.record_baselines(attempt=attempt)
