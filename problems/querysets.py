"""Reads of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KT

if TYPE_CHECKING:
    from problems.models import Problem, Target  # noqa: F401


class ProblemQuerySet(models.QuerySet["Problem", "Problem"]):
    """Rows of problems."""

    def active(self) -> ProblemQuerySet:
        """Keep the problems that are in the catalogue now."""
        return self.filter(active=True)

    def of_track(self, name: str = "pkb87") -> ProblemQuerySet:
        """Keep the problems that count for this track; one that names none counts for the published 87."""
        match = Q(spec__track=name)
        return self.filter(match | Q(spec__track__isnull=True) if name == "pkb87" else match)

    def for_lists(self) -> ProblemQuerySet:
        """Leave the long declaration out, but for the track, as `listed_track` (None for rows of an older sync)."""
        return self.defer("spec").annotate(listed_track=KT("spec__track"))

    def search(self, text: str) -> ProblemQuerySet:
        """Keep problems whose number, title, slug or summary holds every word of `text`."""
        found = self
        for word in text.split():
            match = Q(title__icontains=word) | Q(slug__icontains=word) | Q(summary__icontains=word)
            if word.isdigit() and len(word) < 6:
                match |= Q(number=int(word))
            found = found.filter(match)
        return found


class TargetQuerySet(models.QuerySet["Target", "Target"]):
    """Rows of targets."""

    def active(self) -> TargetQuerySet:
        """Keep the targets that submissions may name."""
        return self.filter(active=True)
