"""The boards: hear of scored attempts and keep one Score per attempt and size."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class LeaderboardConfig(AppConfig):
    """Scores, boards and exports."""

    name = "leaderboard"
    verbose_name = "leaderboard"

    def ready(self) -> None:
        """Listen for results; the dispatch id keeps it to one listener however often this runs."""
        from evaluator.signals import attempt_scored
        from leaderboard import triggers

        pre_migrate.connect(triggers.before_migrate, sender=self, dispatch_uid="leaderboard.triggers")
        post_migrate.connect(triggers.after_migrate, sender=self, dispatch_uid="leaderboard.triggers")
        attempt_scored.connect(_on_attempt_scored, dispatch_uid="leaderboard.record_score")


def _on_attempt_scored(attempt: Any, **_: object) -> None:
    from leaderboard import cells, review, summaries

    for score in review.receive(attempt=attempt):
        summaries.refresh(run=score.run, target=score.target, size=score.size)
        cells.fresh(problem=score.problem, target=score.target, size=score.size, policy="best")
