"""What the API takes and gives for submissions and runs."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.reverse import reverse

from portal.core.fields import Body, BooleanField, ChoiceField
from portal.submissions import line, policies
from portal.submissions.models import Entrant, ModelRun, Submission
from portal.submissions.serving import notice
from portal.submissions.states import WAITING, Mode, State
from problems.selectors import find_problem, target_slugs, unknown_problem, unknown_target


class OrderSerializer(Body):
    """A submission as sent. Give the source as `file` (multipart) or `source` (text), not both."""

    file = serializers.FileField(
        required=False,
        allow_empty_file=True,  # the service says what to send instead
        help_text="A .py, or a .zip with solution.py and .cu/.cuh/.h.",
        error_messages={
            "invalid": "This came as text, not as a file. With curl, write an @ before the name of the file: "
            "-F file=@solution.py. To send text, name the field `source`.",
            "no_name": "The file has no name. Send one that ends in .py or .zip.",
        },
    )
    source = serializers.CharField(  # type: ignore[assignment]
        required=False, trim_whitespace=False, help_text="The text of solution.py, instead of `file`."
    )
    problem = serializers.CharField(
        max_length=80,
        help_text="Slug or number of the problem.",
        error_messages=dict.fromkeys(
            ("required", "blank"), "Say which problem: a slug or number of /api/v1/problems/."
        ),
    )
    target = serializers.CharField(
        max_length=40,
        help_text="Slug of the target, such as cpu4.",
        error_messages=dict.fromkeys(
            ("required", "blank"), "Say which target: a slug of /api/v1/targets/, such as cpu4."
        ),
    )
    mode = ChoiceField(choices=[m.value for m in Mode], default=Mode.SCORE.value)
    size = serializers.CharField(max_length=16, required=False, allow_blank=True, default="")
    run = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=2**62, default=None
    )
    model = serializers.CharField(
        max_length=120,
        required=False,
        allow_blank=True,
        default="",
        help_text="Name of the model that wrote the source, instead of `run`: it joins the community board.",
    )
    sample = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=9999, default=None
    )
    step = serializers.IntegerField(required=False, min_value=0, max_value=999, default=0)
    parent = serializers.UUIDField(  # type: ignore[assignment]
        required=False, allow_null=True, default=None
    )
    source_public = BooleanField(required=False, default=False)
    results_public = BooleanField(required=False, default=True)
    batch = BooleanField(required=False, default=False, help_text="Wait behind interactive work.")

    def also_wrong(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Name a problem or target that there is not."""
        return _unknown_target(data) | _unknown_problem(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Demand exactly one source."""
        attrs = super().validate(attrs)
        given = [name for name in ("file", "source") if name in attrs]
        if len(given) != 1:
            told = "Send the source once: as `file` or as `source`, not both."
            if not given:
                told = "No source was sent. Send it as `file` (with curl: -F file=@solution.py) or as text in `source`."
            raise serializers.ValidationError({"file": serializers.ErrorDetail(told, code="one_source")})
        return attrs


class UploadSerializer(Body):
    """Many solutions of one run, as a zip of files named N_slug_backend.py."""

    file = serializers.FileField(
        allow_empty_file=True,
        help_text="A zip; each file is named N_slug_backend.py (or .zip), such as 1_allreduce_cuda.py.",
        error_messages={"invalid": "This came as text, not as a file. With curl: -F file=@solutions.zip."},
    )
    target = serializers.CharField(max_length=40, help_text="Slug of the target, such as cpu4.")
    mode = ChoiceField(choices=[m.value for m in Mode], default=Mode.SCORE.value)
    sample = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=9999, default=None
    )
    step = serializers.IntegerField(required=False, min_value=0, max_value=999, default=0)
    further = BooleanField(
        required=False,
        default=False,
        help_text="Take files that the run has already once more, as further samples; they count for the k of the run.",
    )
    source_public = BooleanField(required=False, default=False)
    results_public = BooleanField(required=False, default=True)

    def also_wrong(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Name a target that there is not."""
        return _unknown_target(data)


def _unknown_target(data: Mapping[str, Any]) -> dict[str, Any]:
    slug = data.get("target")
    if not isinstance(slug, str) or not slug or slug in target_slugs():
        return {}
    return {"target": [serializers.ErrorDetail(unknown_target(slug), "unknown")]}


def _unknown_problem(data: Mapping[str, Any]) -> dict[str, Any]:
    word = data.get("problem")
    if not isinstance(word, str) or not word or find_problem(word) is not None:
        return {}
    return {"problem": [serializers.ErrorDetail(unknown_problem(word), "unknown")]}


class LinksSerializer(serializers.Serializer[Any]):
    """Where to go on."""

    self = serializers.URLField()
    page = serializers.URLField()
    result = serializers.URLField()
    logs = serializers.URLField()
    source = serializers.URLField()  # type: ignore[assignment]
    cancel = serializers.URLField()


class SubmissionSerializer(serializers.ModelSerializer[Submission]):
    """One submission as everybody who may see it sees it."""

    problem = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    target = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    author = serializers.CharField(source="author.username", read_only=True)
    run = serializers.SerializerMethodField()
    lane = serializers.CharField(source="get_lane_display", read_only=True)
    queue_position = serializers.SerializerMethodField()
    poll_after = serializers.SerializerMethodField()
    notice = serializers.SerializerMethodField()
    sample = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = Submission
        fields: tuple[str, ...] = (
            "id", "state", "stage", "verdict", "code", "message", "problem", "target", "mode", "size", "author",
            "run", "sample", "step", "parent", "lane", "source_name", "source_bytes", "source_public",
            "results_public", "removed", "removed_at", "removed_reason",
            "created_at", "queued_at", "started_at", "finished_at", "queue_position",
            "poll_after", "notice", "links",
        )  # fmt: skip
        read_only_fields = fields

    def to_representation(self, instance: Submission) -> dict[str, Any]:
        """Leave out the file's name for those who may not see the file."""
        shown = super().to_representation(instance)
        viewer = getattr(self.context.get("request"), "user", None)
        if viewer is None or not policies.can_view_source(viewer, instance):
            shown["source_name"] = ""
        return shown

    def get_run(self, submission: Submission) -> dict[str, Any]:
        """Name the run and its entrant."""
        run = submission.run
        return {"id": run.pk, "name": run.name, "entrant": run.entrant.name, "verified": run.verified}

    def get_sample(self, submission: Submission) -> int | None:
        """Say which sample of its run it is; null where it is for no board and holds none."""
        return submission.held_sample

    def get_queue_position(self, submission: Submission) -> int | None:
        """Say the place in the queue, 1 = next; null when it does not wait."""
        return line.place_of(submission) if submission.state == State.QUEUED else None

    def get_poll_after(self, submission: Submission) -> float | None:
        """Say after how many seconds asking again is worth it; null when nothing will change."""
        return poll_after(submission, self.get_queue_position(submission))

    def get_notice(self, submission: Submission) -> str:
        """Say that no host serves the target now and what is served instead; else empty."""
        return notice(submission.target) if submission.state in WAITING else ""

    def get_links(self, submission: Submission) -> dict[str, str]:
        """Give the addresses of everything about it."""
        return links_of(submission, self.context.get("request"))


class ListedSubmissionSerializer(SubmissionSerializer):
    """One submission in a list: without what costs a query of its own. `links.self` has it."""

    class Meta(SubmissionSerializer.Meta):
        fields = tuple(
            name for name in SubmissionSerializer.Meta.fields if name not in ("queue_position", "notice")
        )
        read_only_fields = fields

    def get_poll_after(self, submission: Submission) -> float | None:
        """Say after how many seconds asking for it is worth it; null when nothing will change."""
        return poll_after(submission, None)


def poll_after(submission: Submission, position: int | None) -> float | None:
    """Return a polite time to wait in seconds: about a second in front, ten far behind, None when final."""
    if submission.is_final:
        return None
    return min(10.0, 1.0 + 0.5 * ((position or 1) - 1))


def links_of(submission: Submission, request: Any) -> dict[str, str]:
    """Return the addresses of a submission's resources, absolute when there is a request."""
    names = {
        "self": "api:submission",
        "page": "pages:submission",
        "result": "api:submission_result",
        "logs": "api:submission_logs",
        "source": "api:submission_source",
        "cancel": "api:submission_cancel",
    }
    return {key: reverse(name, args=[submission.pk], request=request) for key, name in names.items()}


class VisibilitySerializer(Body):
    """Who may see a submission's source and results."""

    source_public = BooleanField(required=False)
    results_public = BooleanField(required=False)


class CancelSerializer(Body):
    """An optional reason, kept in the audit trail."""

    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


class RunSerializer(serializers.ModelSerializer[ModelRun]):
    """One campaign of an entrant."""

    entrant = serializers.CharField(source="entrant.name", read_only=True)
    kind = serializers.CharField(source="entrant.kind", read_only=True)

    class Meta:
        model = ModelRun
        fields: tuple[str, ...] = (
            "id", "entrant", "kind", "name", "harness", "prompt_variant", "prompt_hash", "date", "link",
            "verified", "created_at",
        )  # fmt: skip
        read_only_fields = fields


class NewRunSerializer(Body):
    """A run to make; the entrant is made too when you have none of that name."""

    entrant_name = serializers.CharField(max_length=120)
    run_name = serializers.CharField(max_length=120)
    harness = ChoiceField(choices=ModelRun.Harness.choices)
    kind = ChoiceField(choices=Entrant.Kind.choices, default=Entrant.Kind.MODEL)
    vendor = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")
    open_weights = BooleanField(required=False, allow_null=True, default=None)
    reasoning = BooleanField(required=False, allow_null=True, default=None)
    prompt_variant = serializers.CharField(max_length=60, required=False, allow_blank=True, default="")
    prompt_hash = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")
    day = serializers.DateField(required=False, allow_null=True, default=None)
    link = serializers.URLField(max_length=200, required=False, allow_blank=True, default="")


class QuotaSerializer(serializers.Serializer[Any]):
    """What you may still send."""

    queued = serializers.IntegerField()
    queued_limit = serializers.IntegerField()
    hour = serializers.IntegerField()
    hour_limit = serializers.IntegerField()
    remaining = serializers.IntegerField()
    frees_at = serializers.DateTimeField(allow_null=True)
    batch = serializers.IntegerField()
    batch_limit = serializers.IntegerField()
