"""Entrants, runs, submissions and the audit trail: fields and constraints, no rules."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from portal.submissions.querysets import ModelRunQuerySet, SubmissionQuerySet
from portal.submissions.states import FINAL, State, Verdict
from portal.submissions.states import Mode as _Mode
from problems.models import Problem, Target


def _choices(enum: type[State] | type[Verdict] | type[_Mode]) -> list[tuple[str, str]]:
    return [(member.value, member.value.replace("_", " ")) for member in enum]


class Entrant(models.Model):
    """Whoever a score belongs to: a person, a team or a model."""

    class Kind(models.TextChoices):
        """What sort of entrant."""

        PERSON = "person", "person"
        TEAM = "team", "team"
        MODEL = "model", "model"

    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=120)
    slug = models.SlugField(max_length=140, unique=True)
    vendor = models.CharField(max_length=120, blank=True)
    open_weights = models.BooleanField(null=True, blank=True)
    reasoning = models.BooleanField(null=True, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="entrants"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind__in=["person", "team", "model"]), name="entrant_kind_known"
            ),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(kind="person"), name="entrant_one_person_per_owner"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ModelRun(models.Model):
    """One campaign of an entrant: up to problems x samples submissions made in one way."""

    class Harness(models.TextChoices):
        """How the sources came to be."""

        SINGLE_SHOT = "single-shot", "single-shot"
        AGENTIC = "agentic", "agentic"
        UNSORTED = "unsorted", "unsorted"

    entrant = models.ForeignKey(Entrant, on_delete=models.PROTECT, related_name="runs")
    harness = models.CharField(max_length=16, choices=Harness)
    name = models.CharField(max_length=120)
    slug = models.SlugField(max_length=140)
    prompt_variant = models.CharField(max_length=60, blank=True)
    prompt_hash = models.CharField(max_length=64, blank=True)
    date = models.DateField(null=True, blank=True)
    link = models.URLField(blank=True)
    verified = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ModelRunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["entrant__name", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["entrant", "slug"], name="modelrun_slug_per_entrant"),
            models.CheckConstraint(
                condition=Q(harness__in=["single-shot", "agentic", "unsorted"]), name="modelrun_harness_known"
            ),
        ]

    def __str__(self) -> str:
        if self.harness == self.Harness.UNSORTED:  # a word of ours: nobody chose it
            return self.entrant.name
        return f"{self.entrant.name} / {self.name}"

    def get_absolute_url(self) -> str:
        """Return the path of the run's page, which its owner and staff see."""
        return reverse("pages:run", args=[self.pk])


def source_path(submission: "Submission", filename: str) -> str:
    """Return where a source is stored: a folder of its own, never a name the author chose."""
    return f"sources/{submission.id}/{filename}"


class Submission(models.Model):
    """One source for one problem, target and mode, and where it is on its way to a verdict.

    `size` empty means: all ranked cells of the target (mode `score`) or the first of them (other modes).
    """

    class Lane(models.IntegerChoices):
        """Lower goes first."""

        INTERACTIVE = 0, "interactive"
        BATCH = 1, "batch"
        RESCORE = 2, "rescore"

    class Removed(models.TextChoices):
        """Who took it away: staff, or its author."""

        DISQUALIFIED = "disqualified", "disqualified"
        WITHDRAWN = "withdrawn", "withdrawn"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="submissions")
    run = models.ForeignKey(ModelRun, on_delete=models.PROTECT, related_name="submissions")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="submissions")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="submissions")
    mode = models.CharField(max_length=8, choices=_choices(_Mode))
    size = models.CharField(max_length=16, blank=True)
    sample = models.PositiveIntegerField(default=0)
    step = models.PositiveSmallIntegerField(default=0)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )

    source = models.FileField(upload_to=source_path, max_length=200)
    source_name = models.CharField(max_length=120)
    source_sha256 = models.CharField(max_length=64, db_index=True)
    source_bytes = models.PositiveIntegerField()
    source_public = models.BooleanField(default=False)
    results_public = models.BooleanField(default=True)

    state = models.CharField(max_length=10, choices=_choices(State), default=State.RECEIVED.value)
    stage = models.CharField(max_length=20, blank=True)
    verdict = models.CharField(max_length=16, choices=_choices(Verdict), blank=True)
    code = models.CharField(max_length=80, blank=True)
    message = models.TextField(blank=True)

    removed = models.CharField(
        max_length=12,
        choices=Removed,
        blank=True,
        help_text="Taken off every board and list; a tombstone stays.",
    )
    removed_at = models.DateTimeField(null=True, blank=True)
    removed_reason = models.CharField(max_length=300, blank=True)

    lane = models.PositiveSmallIntegerField(choices=Lane, default=Lane.INTERACTIVE)
    idempotency_key = models.CharField(max_length=128, blank=True)
    request_digest = models.CharField(max_length=64, blank=True)

    created_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in State]), name="submission_state_known"
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=["", *(v.value for v in Verdict)]), name="submission_verdict_known"
            ),
            models.CheckConstraint(
                condition=Q(mode__in=[m.value for m in _Mode]), name="submission_mode_known"
            ),
            models.CheckConstraint(
                condition=(Q(state="done") & ~Q(verdict="")) | (~Q(state="done") & Q(verdict="")),
                name="submission_verdict_iff_done",
            ),
            models.CheckConstraint(
                condition=Q(removed="", removed_at=None)
                | (Q(removed__in=["disqualified", "withdrawn"]) & Q(removed_at__isnull=False)),
                name="submission_removed_has_its_time",
            ),
            # Never replaced: a better second try is another sample. What got no verdict, since it was cancelled
            # before it ran or by a fault of ours, frees the place (`holding_samples`).
            models.UniqueConstraint(
                fields=["run", "problem", "target", "sample", "step"],
                condition=Q(mode="score") & ~Q(verdict="infra_error") & ~Q(state="cancelled", stage=""),
                name="submission_one_score_per_sample",
            ),
            models.UniqueConstraint(
                fields=["author", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="submission_idempotency_key",
            ),
        ]
        indexes: ClassVar = [
            # the lease and the queue position
            models.Index(fields=["target", "state", "lane", "queued_at"], name="submission_queue"),
            # My submissions, the hourly quota
            models.Index(fields=["author", "-created_at"], name="submission_mine"),
            # latest results on the home page
            models.Index(fields=["state", "-finished_at"], name="submission_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"

    def get_absolute_url(self) -> str:
        """Return the path of the submission's page."""
        return reverse("pages:submission", args=[self.id])

    @property
    def download_name(self) -> str:
        """What the source is called when it is downloaded: number, slug, id."""
        suffix = str(self.source.name).rpartition(".")[2]
        return f"{self.problem.number}_{self.problem.slug}_{str(self.pk)[:8]}.{suffix}"

    @property
    def held_sample(self) -> int | None:
        """Which sample of its run it is; None in the modes that are for no board."""
        return self.sample if self.mode == _Mode.SCORE else None

    @property
    def is_sample_of_a_run(self) -> bool:
        """Whether a run's figures count it: a person's single files are in none."""
        run = self.run
        single = run.harness == ModelRun.Harness.UNSORTED and run.entrant.kind == Entrant.Kind.PERSON
        return self.held_sample is not None and not single

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in FINAL


class Appeal(models.Model):
    """An author's objection to a rejection or a disqualification, and the answer to it."""

    class Ground(models.TextChoices):
        """What is objected to."""

        REJECTED = "rejected", "rejected by the integrity checks"
        DISQUALIFIED = "disqualified", "disqualified by staff"

    class State(models.TextChoices):
        """Where it stands."""

        OPEN = "open", "waiting for an answer"
        UPHELD = "upheld", "upheld"
        DISMISSED = "dismissed", "dismissed"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="appeals")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="appeals")
    ground = models.CharField(max_length=12, choices=Ground)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    answer = models.TextField(blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["submission", "ground"], name="appeal_one_per_ground"),
            models.CheckConstraint(
                condition=Q(state="open", answered_at=None)
                | (Q(state__in=["upheld", "dismissed"]) & Q(answered_at__isnull=False) & ~Q(answer="")),
                name="appeal_closed_with_an_answer",
            ),
        ]

    def __str__(self) -> str:
        return f"appeal of {self.submission_id} ({self.state})"


class AuditEvent(models.Model):
    """Who did what to which object, and why. Rows are only ever added."""

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    reason = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [models.Index(fields=["object_type", "object_id", "at"], name="audit_of_object")]

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}"
