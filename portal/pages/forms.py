"""Forms of the submission pages. They only shape input: every rule is in the services."""

from collections.abc import Set
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict

from portal.accounts.models import User
from portal.submissions import serving
from portal.submissions.models import Entrant, ModelRun, Submission
from portal.submissions.states import Mode
from portal.submissions.uploads import MAX_TOTAL
from problems.models import Problem, Target
from problems.selectors import target_slugs


class _Problems(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.number:02d} · {obj.title}"


class _Targets(forms.ModelChoiceField):
    served: Set[int] = frozenset()

    def label_from_instance(self, obj: Any) -> str:
        missing = "" if obj.pk in self.served else " (no host serves it now)"
        return f"{obj.slug}: {obj.title}{missing}"


class SummedUpForm(forms.Form):
    """A form with a summary of what is wrong above it (`components/summary.html`)."""

    def problems_found(self) -> list[tuple[Any, str]]:
        """Return what is wrong with which field."""
        named = [field for field in self if field.errors]
        return [(field, str(text)) for field in named for text in field.errors]


class SubmitForm(SummedUpForm):
    """One source, by file or pasted, and what to do with it."""

    MODES = (
        (Mode.SCORE.value, "Score"),
        (Mode.QUICK.value, "Quick"),
        (Mode.CHECK.value, "Check"),
        (Mode.PROFILE.value, "Profile"),
    )

    SIZES = (("", "as the mode says"), ("tiny", "tiny"), ("default", "default"), ("large", "large"))

    problem = _Problems(queryset=Problem.objects.none(), to_field_name="slug", empty_label="choose a problem")
    target = _Targets(queryset=Target.objects.none(), to_field_name="slug", empty_label="choose a target")
    file = forms.FileField(required=False, allow_empty_file=True)
    source = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "source", "spellcheck": "false", "autocomplete": "off", "rows": 8}
        ),
    )
    mode = forms.ChoiceField(choices=MODES, initial=Mode.SCORE.value, widget=forms.RadioSelect)
    size = forms.ChoiceField(choices=SIZES, required=False)
    run = forms.ModelChoiceField(queryset=ModelRun.objects.none(), required=False, empty_label="my own work")
    model = forms.CharField(
        max_length=120,
        required=False,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
    )
    source_public = forms.BooleanField(required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["problem"].queryset = Problem.objects.active()  # type: ignore[attr-defined]
        self.served = serving.served()
        self.fields["target"].served = self.served  # type: ignore[attr-defined]
        self.fields["target"].queryset = Target.objects.active()  # type: ignore[attr-defined]
        self.models = list(
            Entrant.objects.filter(owner=user, kind=Entrant.Kind.MODEL).values_list("name", flat=True)
        )
        runs = ModelRun.objects.usable_by(user).exclude(harness=ModelRun.Harness.UNSORTED)
        self.fields["run"].queryset = runs  # type: ignore[attr-defined]

    def serving_help(self) -> str:
        """Say beside the targets which are served now, and what becomes of the rest."""
        choices = list(self.fields["target"].queryset)  # type: ignore[attr-defined]
        names = [target.slug for target in choices if target.pk in self.served]
        if len(names) == len(choices):
            return ""
        return (
            f"Served now: {', '.join(names)}. What you send for another target is kept and waits until a host"
            if names
            else "No host serves any target at the moment. What you send is kept and waits until one"
        ) + " serves it."

    def is_served(self) -> bool:
        """Whether the target that is chosen has a host, or none is chosen yet."""
        chosen = self["target"].value()
        slugs = {row.slug for row in self.fields["target"].queryset if row.pk in self.served}  # type: ignore[attr-defined]
        return not chosen or chosen in slugs

    def clean(self) -> dict[str, Any]:
        """Demand one source."""
        data = super().clean() or {}
        if "file" in self.errors or "source" in self.errors:
            return data
        if isinstance(self.files, MultiValueDict) and len(self.files.getlist("file")) > 1:
            self.add_error("file", "You sent several files. Choose one, or pack them into a zip.")
        if data.get("file") is None and not data.get("source"):
            self.add_error("file", "Choose a file, or paste the source below.")
        if data.get("file") is not None and data.get("source"):
            self.add_error("source", "You chose a file and pasted text. Send one of them.")
        return data


class RunForm(forms.Form):
    """A run to make."""

    entrant_name = forms.CharField(max_length=120, label="Model or team", help_text="Such as a model's name.")
    kind = forms.ChoiceField(choices=Entrant.Kind.choices, initial=Entrant.Kind.MODEL, label="This is a")
    vendor = forms.CharField(max_length=120, required=False, help_text="Who makes the model.")
    open_weights = forms.NullBooleanField(label="Open weights")
    reasoning = forms.NullBooleanField(label="Reasoning model")
    run_name = forms.CharField(
        max_length=120, label="Run", help_text="Such as '2026-11 single-shot, one-shot prompt'."
    )
    harness = forms.ChoiceField(
        choices=[c for c in ModelRun.Harness.choices if c[0] != ModelRun.Harness.UNSORTED],
        help_text="Single-shot: k samples a problem. Agentic: steps that build on each other.",
    )
    prompt_variant = forms.CharField(max_length=60, required=False)
    prompt_hash = forms.CharField(
        max_length=64, required=False, help_text="SHA-256 that the prompt download gives."
    )
    day = forms.DateField(required=False, label="Date", widget=forms.DateInput(attrs={"type": "date"}))
    link = forms.URLField(max_length=200, required=False, assume_scheme="https")


class RunUploadForm(SummedUpForm):
    """A zip of solutions for a run."""

    file = forms.FileField(
        label="Zip", allow_empty_file=True, widget=forms.FileInput(attrs={"accept": ".zip"})
    )
    target = _Targets(queryset=Target.objects.none(), to_field_name="slug", empty_label=None)
    mode = forms.ChoiceField(choices=SubmitForm.MODES, initial=Mode.SCORE.value)
    further = forms.BooleanField(
        required=False, help_text="One further sample of one problem counts for the k of the whole run."
    )
    source_public = forms.BooleanField(required=False)
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["target"].served = serving.served()  # type: ignore[attr-defined]
        self.fields["target"].queryset = Target.objects.active()  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        """Refuse what is larger than all that is taken, before it is read."""
        upload = self.cleaned_data["file"]
        if upload.size > MAX_TOTAL:
            raise forms.ValidationError(f"The zip is larger than {MAX_TOTAL // 2**20} MiB. Send it in parts.")
        return upload


class _Runs(forms.ModelChoiceField):
    """Runs of somebody; what holds single files has the name that My work gives it."""

    def label_from_instance(self, obj: Any) -> str:
        single = obj.harness == ModelRun.Harness.UNSORTED and obj.entrant.kind != Entrant.Kind.MODEL
        return "my own work" if single else str(obj)


class MineForm(forms.Form):
    """Filters of My work."""

    SORTS = (
        ("", "newest first"),
        ("oldest", "oldest first"),
        ("fastest", "fastest first"),
        ("problem", "problem"),
    )

    q = forms.CharField(max_length=100, required=False)
    sort = forms.ChoiceField(required=False, choices=SORTS)
    state = forms.ChoiceField(required=False, choices=())
    target = forms.ChoiceField(required=False, choices=())
    run = _Runs(
        ModelRun.objects.none(),
        required=False,
        empty_label="all",
        error_messages={
            "invalid_choice": "'%(value).40s' is the id of no run of yours, or that you sent a file to."
        },
    )

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["run"].queryset = ModelRun.objects.seen_by(by)  # type: ignore[attr-defined]
        field = Submission._meta.get_field("state")
        verdict = Submission._meta.get_field("verdict")
        slugs = target_slugs()
        self.fields["target"].choices = [("", "all"), *((slug, slug) for slug in slugs)]  # type: ignore[attr-defined]
        self.fields["state"].choices = [  # type: ignore[attr-defined]
            ("", "all"),
            ("live", "waiting or running"),
            *((v, label) for v, label in verdict.choices or ()),
            *((v, label) for v, label in field.choices or () if v == "cancelled"),
        ]
        for name in ("sort", "state", "target"):
            known = [value for value, _ in self.fields[name].choices]  # type: ignore[attr-defined]
            self.fields[name].error_messages["invalid_choice"] = (
                f"'%(value).40s' is none of: {', '.join(filter(None, known))}."
            )
