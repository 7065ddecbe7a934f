"""Hosts that judge, and their tries at submissions."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class Host(models.Model):
    """A machine that judges for one target, known by its name."""

    class State(models.TextChoices):
        ACTIVE = "active", "active"
        DRAINING = "draining", "draining"
        QUARANTINED = "quarantined", "quarantined"

    name = models.CharField(max_length=120, unique=True)
    target = models.ForeignKey("problems.Target", on_delete=models.PROTECT, related_name="hosts")
    session = models.UUIDField(
        default=uuid.uuid4, help_text="Changes at each registration; an older session may not lease."
    )
    state = models.CharField(max_length=12, choices=State.choices, default=State.ACTIVE)
    reason = models.CharField(max_length=300, blank=True, help_text="Why it is not active.")
    registered_at = models.DateTimeField()
    last_seen = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="Stopped on purpose, at.")
    environment = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=("active", "draining", "quarantined")),
                name="evaluator_host_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.target_id})"


class Attempt(models.Model):
    """One try at one submission by one host. It is *live* until ``finished_at`` is set."""

    class Exit(models.TextChoices):
        LIVE = "", "live"
        SCORED = "scored", "scored"
        CANCELLED = "cancelled", "cancelled by its author"
        FAULT = "fault", "fault of ours"
        LEASE_LOST = "lease_lost", "the host went silent"
        RELEASED = "released", "given back unharmed"

    submission = models.ForeignKey(
        "submissions.Submission", on_delete=models.CASCADE, related_name="attempts"
    )
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    lease_token = models.UUIDField(default=uuid.uuid4, unique=True)
    leased_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    exit_reason = models.CharField(max_length=12, choices=Exit.choices, blank=True, default=Exit.LIVE)
    counted = models.BooleanField(
        default=False, help_text="A fault of ours that counts towards the three after which we stop."
    )
    fault = models.CharField(max_length=500, blank=True, help_text="What went wrong on our side.")
    stage = models.CharField(max_length=20, blank=True)
    stages = models.JSONField(default=list, blank=True, help_text="[{stage, at, detail}] in order.")
    result = models.JSONField(null=True, blank=True)
    log = models.TextField(blank=True, help_text="Head and tail of what the ranks printed.")
    harness_version = models.CharField(max_length=40, blank=True)
    rescore = models.ForeignKey(
        "evaluator.Rescore", null=True, blank=True, on_delete=models.SET_NULL, related_name="attempts"
    )
    triage = models.JSONField(
        null=True, blank=True, help_text="Flags of the static scan; empty list: none; null: not scanned."
    )
    announced_at = models.DateTimeField(
        null=True, blank=True, help_text="When the result reached the boards; empty means: tell again."
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["submission", "number"], name="evaluator_attempt_numbered"),
            models.UniqueConstraint(
                fields=["submission"],
                condition=Q(finished_at__isnull=True),
                name="evaluator_one_live_attempt_per_submission",
            ),
            models.UniqueConstraint(
                fields=["host"],
                condition=Q(finished_at__isnull=True),
                name="evaluator_one_live_attempt_per_host",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True, exit_reason="")
                | (Q(finished_at__isnull=False) & ~Q(exit_reason="")),
                name="evaluator_attempt_ends_with_a_reason",
            ),
            models.CheckConstraint(
                condition=~Q(exit_reason="scored") | Q(result__isnull=False),
                name="evaluator_scored_attempt_has_a_result",
            ),
        ]
        indexes: ClassVar = [
            # The reaper: live leases by the time at which they lapse.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(finished_at__isnull=True),
                name="evaluator_live_leases",
            ),
            # The ticker: results that have not reached the boards.
            models.Index(
                fields=["finished_at"],
                condition=Q(exit_reason="scored", announced_at__isnull=True),
                name="evaluator_unannounced",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} at {self.submission_id}"


class Artifact(models.Model):
    """A file that belongs to an attempt's result: a profile's trace and the timeline that the page draws."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=40)
    file = models.FileField(max_length=200)
    bytes = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["attempt", "name"], name="evaluator_artifact_named_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of attempt {self.attempt_id}"


class Rescore(models.Model):
    """An order to judge a finished submission once more, after everything that waits for a first verdict.

    ``confirm`` measures a new best again before it ranks first and leaves the verdict alone; ``order``
    replaces verdict and scores.
    """

    class Kind(models.TextChoices):
        CONFIRM = "confirm", "confirm a new best"
        ORDER = "order", "judge again"

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed by a fault of ours"

    submission = models.ForeignKey(
        "submissions.Submission", on_delete=models.CASCADE, related_name="rescores"
    )
    kind = models.CharField(max_length=8, choices=Kind)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    reason = models.CharField(max_length=300, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["submission"],
                condition=Q(state__in=("queued", "running")),
                name="evaluator_one_open_rescore_per_submission",
            ),
            models.CheckConstraint(
                condition=Q(state__in=("queued", "running"), finished_at=None)
                | Q(state__in=("done", "failed"), finished_at__isnull=False),
                name="evaluator_rescore_ended_has_its_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["created_at"], condition=Q(state="queued"), name="evaluator_rescore_queue"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.submission_id} ({self.state})"


class Baseline(models.Model):
    """One comparison of the reference with itself on a host: what the noise floor is pooled from."""

    class Kind(models.TextChoices):
        BLOCKS = "blocks", "block before against block after"
        AA = "aa", "the reference sent as a submission"

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="baselines")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="baselines")
    problem = models.ForeignKey("problems.Problem", on_delete=models.CASCADE, related_name="baselines")
    size = models.CharField(max_length=16)
    kind = models.CharField(max_length=8, choices=Kind)
    log_ratio = models.FloatField(help_text="Natural logarithm of the ratio; 0 on a machine without noise.")
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["attempt", "size", "kind"], name="evaluator_baseline_per_attempt_size_kind"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["problem", "host", "-at"], name="evaluator_baseline_pool"),
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} on {self.host_id}: {self.log_ratio:+.3f}"


class Share(models.Model):
    """When a user was last served on a target: the one who waited longest goes first in a lane."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    target = models.ForeignKey("problems.Target", on_delete=models.CASCADE, related_name="+")
    served_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "target"], name="evaluator_share_per_user_and_target"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} on {self.target_id}: {self.served_at:%Y-%m-%d %H:%M:%S}"
