"""Scores, written once per scored attempt and size, and what runs achieved with them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from leaderboard.querysets import ScoreQuerySet


class Score(models.Model):
    """What one attempt measured at one size. Figures never change; standing may be taken away."""

    attempt = models.ForeignKey("evaluator.Attempt", on_delete=models.CASCADE, related_name="scores")
    submission = models.ForeignKey("submissions.Submission", on_delete=models.CASCADE, related_name="scores")
    entrant = models.ForeignKey("submissions.Entrant", on_delete=models.PROTECT, related_name="scores")
    run = models.ForeignKey("submissions.ModelRun", on_delete=models.PROTECT, related_name="scores")
    problem = models.ForeignKey("problems.Problem", on_delete=models.PROTECT, related_name="scores")
    target = models.ForeignKey("problems.Target", on_delete=models.PROTECT, related_name="scores")
    size = models.CharField(max_length=16)
    verdict = models.CharField(max_length=16)
    code = models.CharField(max_length=80, blank=True)
    correct = models.BooleanField()
    protocol = models.CharField(max_length=8)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    noise_floor = models.FloatField(help_text="Relative; ratios within it are ties.")
    solution_ms = models.FloatField(null=True, blank=True)
    reference_ms = models.FloatField(null=True, blank=True)
    t_roof_ms = models.FloatField(null=True, blank=True)
    utilisation = models.FloatField(null=True, blank=True)
    bound = models.CharField(max_length=20, blank=True)
    peak_bytes = models.BigIntegerField(null=True, blank=True)
    reference_peak_bytes = models.BigIntegerField(null=True, blank=True)
    isolation_grade = models.CharField(max_length=8)
    input_set = models.CharField(max_length=16)
    problem_revision = models.CharField(max_length=64)
    harness_version = models.CharField(max_length=40, blank=True)
    mechanisms = models.JSONField(default=list, blank=True)
    flags = models.JSONField(default=list, blank=True)
    ranked = models.BooleanField(help_text="Measured in a way that may stand on the board.")
    provisional = models.BooleanField(
        default=False, help_text="A new best that waits for a second measurement before it takes its place."
    )
    tries = models.PositiveSmallIntegerField(
        default=0, help_text="Second measurements that did not confirm it."
    )
    confirmed_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(
        null=True, blank=True, help_text="A later measurement took its place, or it only bore witness."
    )
    created_at = models.DateTimeField()

    objects = ScoreQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["attempt", "size"], name="score_one_per_attempt_and_size"),
            models.CheckConstraint(
                condition=Q(correct=True, verdict="correct") | (Q(correct=False) & ~Q(verdict="correct")),
                name="score_correct_is_its_verdict",
            ),
            models.CheckConstraint(
                condition=Q(ranked=False)
                | Q(correct=True, protocol="paper", speedup__isnull=False, speedup__gt=0),
                name="score_ranked_is_correct_timed_and_full",
            ),
            models.CheckConstraint(
                condition=Q(ranked=False)
                | Q(
                    # a NULL would make the comparison unknown, and unknown passes a CHECK
                    speedup_low__isnull=False,
                    speedup_high__isnull=False,
                    speedup_low__gt=0,
                    speedup_low__lte=F("speedup"),
                    speedup_high__gte=F("speedup"),
                ),
                name="score_ranked_interval_holds_the_speedup",
            ),
            models.CheckConstraint(
                condition=Q(provisional=False) | Q(ranked=True), name="score_provisional_is_ranked"
            ),
            models.CheckConstraint(
                condition=Q(isolation_grade__in=("full", "partial", "none")), name="score_grade_known"
            ),
        ]
        indexes: ClassVar = [
            # A problem board, and the best of each entrant on it.
            models.Index(
                fields=["target", "problem", "size", "entrant", "-speedup"],
                condition=Q(ranked=True, superseded_at=None),
                name="score_problem_board",
            ),
            # A model page and the metrics of a run.
            models.Index(fields=["run", "target", "size"], name="score_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.submission_id} at {self.size}: {self.verdict}"


class Review(models.Model):
    """Staff looked at the result of an attempt; it leaves the review queue."""

    attempt = models.OneToOneField("evaluator.Attempt", on_delete=models.CASCADE, related_name="review")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField()
    note = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"review of attempt {self.attempt_id}"


class RunSummary(models.Model):
    """Figures of one run on a target at a size, kept at write time (summaries.py says when they are due)."""

    run = models.ForeignKey("submissions.ModelRun", on_delete=models.CASCADE, related_name="summaries")
    target = models.ForeignKey("problems.Target", on_delete=models.CASCADE, related_name="+")
    size = models.CharField(max_length=16)
    due = models.BooleanField(default=True, help_text="Something it was taken over changed (triggers.py).")
    rules = models.CharField(
        max_length=40, blank=True, default="", help_text="Protocol version under which it was taken."
    )
    public = models.BooleanField(
        default=False, help_text="Whether anybody may see a result of it for boards."
    )
    samples = models.PositiveIntegerField(default=0)
    pass_1 = models.FloatField(default=0.0)
    fast_1 = models.FloatField(default=0.0)
    solved = models.PositiveIntegerField(default=0)
    geometric_mean = models.FloatField(default=0.0)
    figures = models.JSONField(default=dict)
    cells = models.TextField(default="", help_text="The figures as cells of the board (figure_cells.py).")
    detail = models.JSONField(default=dict, help_text="Outcome per problem, and every sample's.")
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "target", "size"], name="summary_one_per_run_target_size"),
        ]
        indexes: ClassVar = [
            # The model board.
            models.Index(fields=["target", "size", "-fast_1"], name="summary_model_board"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} at {self.size}: {self.pass_1:.3f}"


class BoardCell(models.Model):
    """The board of one problem on a target at a size, as ids of scores kept at write time (cells.py)."""

    target = models.ForeignKey("problems.Target", on_delete=models.CASCADE, related_name="+")
    problem = models.ForeignKey("problems.Problem", on_delete=models.CASCADE, related_name="+")
    size = models.CharField(max_length=16)
    due = models.BooleanField(default=True, help_text="Something it was taken over changed (triggers.py).")
    rules = models.CharField(
        max_length=40, blank=True, default="", help_text="Protocol version under which it was taken."
    )
    leader = models.ForeignKey(
        Score, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", help_text="First place."
    )
    entrants = models.PositiveIntegerField(default=0)
    standing = models.PositiveIntegerField(default=0, help_text="Scores that stand.")
    waiting = models.PositiveIntegerField(default=0, help_text="New bests that wait to be confirmed.")
    scores = models.JSONField(default=dict, help_text="{kind of entrant: scores that stand}")
    stale = models.JSONField(default=dict, help_text="{kind of entrant: ranked scores of older rules}")
    best = models.JSONField(default=list, help_text="[[score, speedup, noise floor, kind]] in board order")
    latest = models.JSONField(default=list, help_text="the same of the newest score of each entrant")
    awaiting = models.JSONField(default=list, help_text="[[score, kind]] of new bests that wait")
    records = models.JSONField(default=list, help_text="[[score, speedup, time]], oldest first")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["target", "problem", "size"], name="cell_one_per_target_problem_size"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} on {self.target_id} at {self.size}: {self.entrants}"


class BoardVersion(models.Model):
    """Counters whose sum rises with every write that changes a board (triggers.py)."""

    slot = models.PositiveSmallIntegerField(primary_key=True)
    changes = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.slot}: {self.changes}"


class ExportVersion(models.Model):
    """One version of the public data set; its files lie on the default storage (export_versions.py)."""

    content_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of scores, runs and card.")
    created_at = models.DateTimeField()
    scores = models.PositiveIntegerField()
    runs = models.PositiveIntegerField()
    last_score = models.BigIntegerField(help_text="Highest id of a score when it was built.")
    basis_count = models.BigIntegerField(help_text="Scores up to it whose submissions were public.")
    basis_sum = models.BigIntegerField(help_text="The sum of their ids.")
    files = models.JSONField(help_text="{name: {path, bytes, sha256}}")

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"version {self.pk} ({self.content_hash[:12]})"


class ImportedResult(models.Model):
    """A result of our harness that was made elsewhere: shown as such, and without a place on any board."""

    content_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the result as it came.")
    target = models.ForeignKey("problems.Target", on_delete=models.PROTECT, related_name="+")
    problem = models.ForeignKey("problems.Problem", on_delete=models.PROTECT, related_name="+")
    size = models.CharField(max_length=16)
    label = models.CharField(max_length=160, help_text="Name of the judged file, as the result gives it.")
    source_sha256 = models.CharField(max_length=64, blank=True)
    verdict = models.CharField(max_length=16)
    code = models.CharField(max_length=80, blank=True)
    protocol = models.CharField(max_length=8)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    solution_ms = models.FloatField(null=True, blank=True)
    reference_ms = models.FloatField(null=True, blank=True)
    utilisation = models.FloatField(null=True, blank=True)
    isolation_grade = models.CharField(max_length=8)
    input_set = models.CharField(max_length=16, blank=True)
    problem_revision = models.CharField(max_length=64)
    harness_version = models.CharField(max_length=40, blank=True)
    flags = models.JSONField(default=list, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    result = models.JSONField(help_text="The result as it came.")
    origin = models.CharField(max_length=200, help_text="Name of the file it came in.")
    measured_on = models.DateField(null=True, blank=True, help_text="As the file says.")
    imported_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-imported_at", "-pk"]
        indexes: ClassVar = [
            # The section below a problem board.
            models.Index(fields=["target", "problem", "size"], name="imported_of_board"),
        ]

    def __str__(self) -> str:
        return f"{self.label} on {self.target_id} (imported)"
