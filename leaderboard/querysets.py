"""Reads of scores. ``standing`` is the one definition of what may stand on a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F

from evaluator.harness.version import PROTOCOL_VERSION

if TYPE_CHECKING:
    from leaderboard.models import Score  # noqa: F401 (named in the base class)

INPUT_SET = "hardened"

RULES = f"{PROTOCOL_VERSION}.8"
"""What stored figures were taken under: the judge's protocol, and our count of changes to what is kept."""


class ScoreQuerySet(models.QuerySet["Score", "Score"]):
    """Rows of scores."""

    def provenance_current(self) -> ScoreQuerySet:
        """Keep scores of the present revision of their problem and judge, against the hardened inputs."""
        return self.filter(
            problem_revision=F("problem__score_revision"),
            input_set=INPUT_SET,
            harness_version=PROTOCOL_VERSION,
        )

    def stale(self) -> ScoreQuerySet:
        """Keep what was measured against another revision, input set or judge than the present ones."""
        return self.exclude(
            problem_revision=F("problem__score_revision"),
            input_set=INPUT_SET,
            harness_version=PROTOCOL_VERSION,
        )

    def shown(self) -> ScoreQuerySet:
        """Keep what anybody may see: public results that nobody removed and no re-score replaced."""
        return self.filter(superseded_at=None, submission__removed="", submission__results_public=True)

    def fastest(self) -> ScoreQuerySet:
        """Keep the timed, correct ones that no re-score replaced, of any mode, the fastest first."""
        return self.filter(superseded_at=None, correct=True, speedup__isnull=False).order_by(
            "-speedup", "size"
        )

    def rankable(self) -> ScoreQuerySet:
        """Keep what may rank, whether or not it waits for its second measurement."""
        return self.filter(ranked=True).provenance_current().shown()

    def standing(self) -> ScoreQuerySet:
        """Keep what ranks: measured by the full protocol, correct, current, public, neither removed nor waiting.

        Pages, charts, API and exports all start here, so a row that leaves this set leaves them all.
        """
        return self.rankable().filter(provisional=False)

    def awaiting(self) -> ScoreQuerySet:
        """Keep the new bests that wait for a second measurement."""
        return self.rankable().filter(provisional=True)
