"""Mirror of the catalogue for queries and foreign keys. The files are the truth (`sync_catalog`)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from problems.querysets import ProblemQuerySet, TargetQuerySet


class Problem(models.Model):
    """One problem. `spec` is the whole of its public declaration as JSON."""

    slug = models.SlugField(max_length=80, unique=True)
    number = models.PositiveSmallIntegerField(unique=True)
    title = models.CharField(max_length=160)
    level = models.PositiveSmallIntegerField()
    domain = models.CharField(max_length=40)
    parallelism = models.JSONField(default=list)
    collectives = models.JSONField(default=list)
    bound = models.CharField(max_length=20, blank=True)
    summary = models.TextField(blank=True)
    score_revision = models.CharField(max_length=64)
    roofline_revision = models.CharField(max_length=64)
    spec = models.JSONField(default=dict)
    active = models.BooleanField(default=True)

    objects = ProblemQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(level__gte=1) & Q(level__lte=6), name="problem_level_1_to_6")
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"

    def get_absolute_url(self) -> str:
        """Return the path of the problem's page."""
        return reverse("pages:problem", args=[self.slug])


class Target(models.Model):
    """Hardware on which scores are comparable. `cells` are the sizes that rank."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=120)
    ranks = models.PositiveSmallIntegerField()
    backend = models.CharField(max_length=16)
    cells = models.JSONField(default=list)
    ranked = models.BooleanField(default=False)
    spec = models.JSONField(default=dict)
    active = models.BooleanField(default=True)

    objects = TargetQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.title
