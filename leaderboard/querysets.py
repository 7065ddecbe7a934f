"""Reads of scores. ``standing`` is the one definition of what may stand on a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F

if TYPE_CHECKING:
    from leaderboard.models import Score  # noqa: F401 (named in the base class)


class ScoreQuerySet(models.QuerySet["Score", "Score"]):
    """Rows of scores."""

    def provenance_current(self) -> ScoreQuerySet:
        """Keep scores of the present revision of their problem, against the hardened inputs."""
        return self.filter(problem_revision=F("problem__score_revision"), input_set="hardened")

    def shown(self) -> ScoreQuerySet:
        """Keep what anybody may see: public results that were not disqualified."""
        return self.filter(disqualified_at=None, submission__results_public=True)

    def standing(self) -> ScoreQuerySet:
        """Keep what ranks: measured by the full protocol, correct, current, public, not disqualified.

        Pages, charts, API and exports all start here, so a row that leaves this set leaves them all.
        """
        return self.filter(ranked=True).provenance_current().shown()
