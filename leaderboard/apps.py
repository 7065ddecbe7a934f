"""The boards: hear of scored attempts and keep one Score per attempt and size."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    """Scores, boards and exports."""

    name = "leaderboard"
    verbose_name = "leaderboard"

    def ready(self) -> None:
        """Listen for results; the dispatch id keeps it to one listener however often this runs."""
        from evaluator.signals import attempt_scored

        attempt_scored.connect(_on_attempt_scored, dispatch_uid="leaderboard.record_score")


def _on_attempt_scored(attempt: Any, **_: object) -> None:
    from leaderboard import review, summaries

    for score in review.receive(attempt=attempt):
        summaries.refresh(run=score.run, target=score.target, size=score.size)
