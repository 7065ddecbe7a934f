"""Reads of scores. ``standing`` is the one definition of what may stand on a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Exists, F, OuterRef

from evaluator.harness.version import PROTOCOL_VERSION
from portal.submissions.models import Submission
from portal.submissions.states import FINAL

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

    def with_last(self) -> ScoreQuerySet:
        """Annotate `last`: whether no later step of the sample has ended; of a sample only the last step counts.

        Later steps that have no score here or are not shown count too, or stopping, withdrawing or hiding a bad
        last step would bring the good one before it back.
        """
        same = {name: OuterRef(f"submission__{name}") for name in ("run", "target", "problem", "sample")}
        later = Submission.objects.filter(**same, step__gt=OuterRef("submission__step"), state__in=FINAL)
        return self.annotate(last=~Exists(later.holding_samples()))

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
