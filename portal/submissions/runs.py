"""Entrants and runs: everyone has a personal one, models and teams have others."""

from datetime import date
from typing import Any
from unicodedata import category

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from portal.accounts.models import User
from portal.core.errors import InvalidInput, NotAllowed
from portal.submissions.models import AuditEvent, Entrant, ModelRun

MAX_RUNS_PER_USER = 200
UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
"""Unicode categories of characters that have no look of their own."""


@transaction.atomic
def ensure_personal_run(*, by: User) -> ModelRun:
    """Return the user's own run `unsorted`, making it and the user's entrant on first use."""
    entrant = Entrant.objects.filter(owner=by, kind=Entrant.Kind.PERSON).first()
    if entrant is None:
        entrant, _ = Entrant.objects.get_or_create(
            owner=by,
            kind=Entrant.Kind.PERSON,
            defaults={"name": by.get_username(), "slug": _free_slug(by.get_username())},
        )
    run, _ = ModelRun.objects.get_or_create(
        entrant=entrant, slug="unsorted", defaults={"name": "unsorted", "harness": ModelRun.Harness.UNSORTED}
    )
    return run


@transaction.atomic
def create_run(
    *,
    by: User,
    entrant_name: str,
    run_name: str,
    harness: str,
    kind: str = Entrant.Kind.MODEL,
    vendor: str = "",
    open_weights: bool | None = None,
    reasoning: bool | None = None,
    prompt_variant: str = "",
    prompt_hash: str = "",
    day: date | None = None,
    link: str = "",
) -> ModelRun:
    """Make a run, and its entrant when `by` has none of that name. It is a community run until verified.

    Raises InvalidInput when a name is empty or the entrant has a run of that name.
    """
    for field, value in (("entrant_name", entrant_name), ("run_name", run_name)):
        if not slugify(value):
            raise InvalidInput("run.name_missing", "Give a name with letters or digits.", field=field)
    _demand_seen("entrant_name", entrant_name)
    _demand_seen("run_name", run_name)
    _demand_seen("vendor", vendor)
    _demand_seen("prompt_variant", prompt_variant)
    _demand_seen("prompt_hash", prompt_hash)
    if ModelRun.objects.filter(entrant__owner=by).count() >= MAX_RUNS_PER_USER:
        raise InvalidInput("run.too_many", f"You have {MAX_RUNS_PER_USER} runs.", field="run_name")
    entrant = Entrant.objects.filter(owner=by, name=entrant_name.strip(), kind=kind).first()
    if entrant is None:
        entrant = Entrant.objects.create(
            owner=by,
            kind=kind,
            name=entrant_name.strip(),
            slug=_free_slug(entrant_name),
            vendor=vendor.strip(),
            open_weights=open_weights,
            reasoning=reasoning,
        )
    facts: dict[str, Any] = {
        "prompt_variant": prompt_variant,
        "prompt_hash": prompt_hash,
        "date": day,
        "link": link,
    }
    try:
        with transaction.atomic():
            run = ModelRun.objects.create(
                entrant=entrant, name=run_name.strip(), slug=slugify(run_name)[:140], harness=harness, **facts
            )
    except IntegrityError as error:
        raise InvalidInput(
            "run.name_taken", "This entrant has a run of that name. Choose another.", field="run_name"
        ) from error
    AuditEvent.objects.create(
        actor=by, action="run.create", object_type="modelrun", object_id=str(run.pk), after={"name": str(run)}
    )
    return run


@transaction.atomic
def set_verified(*, by: User, run: ModelRun, verified: bool, reason: str = "") -> ModelRun:
    """Vouch for a run, or withdraw that; only verified runs stand on the model board. Staff only."""
    if not by.is_staff:
        raise NotAllowed("run.not_staff", "Only staff may vouch for a run.")
    if ModelRun.objects.filter(pk=run.pk, verified=not verified).update(verified=verified):
        AuditEvent.objects.create(
            actor=by,
            action="run.verify" if verified else "run.withdraw",
            object_type="modelrun",
            object_id=str(run.pk),
            before={"verified": not verified},
            after={"verified": verified},
            reason=reason[:300],
        )
    run.refresh_from_db()
    return run


@transaction.atomic
def ensure_model_run(*, by: User, model: str) -> ModelRun:
    """Return the user's run `unsorted` of a model of theirs, making both on first use.

    It is a community run: anybody may name anything, so it stands on the community board only. Upper and
    lower case name the same model. Raises InvalidInput when the name has no letter and no digit.
    """
    name = " ".join(model.split())
    if not slugify(name):
        raise InvalidInput("model.name_missing", "Give a name with letters or digits.", field="model")
    _demand_seen("model", name)
    owned = Entrant.objects.filter(owner=by, kind=Entrant.Kind.MODEL, name__iexact=name)
    found = ModelRun.objects.filter(entrant__in=owned, slug="unsorted", harness=ModelRun.Harness.UNSORTED)
    run = found.select_related("entrant").first()
    if run is not None:
        return run
    return create_run(
        by=by,
        entrant_name=entrant.name if (entrant := owned.first()) else name,
        run_name="unsorted",
        harness=ModelRun.Harness.UNSORTED,
    )


def find_run(*, by: User, run_id: int | None, model: str = "") -> ModelRun:
    """Return the run to submit to: the named one, that of a model by name, else the personal one.

    Raises InvalidInput for others' runs, and when both a run and a model are named.
    """
    if model.strip():
        if run_id is not None:
            raise InvalidInput(
                "run.and_model", "A run says which model it is. Name the run or the model.", field="model"
            )
        return ensure_model_run(by=by, model=model)
    if run_id is None:
        return ensure_personal_run(by=by)
    runs = ModelRun.objects.select_related("entrant") if by.is_staff else ModelRun.objects.usable_by(by)
    run = runs.filter(pk=run_id).first()
    if run is None:
        raise InvalidInput(
            "run.unknown", "You have no run of this id. Leave `run` out, or see /api/v1/runs/.", field="run"
        )
    return run


def _demand_seen(field: str, value: str) -> None:
    """Refuse what has no look: such names look like another's, or turn the line they stand in around."""
    if unseen := next((letter for letter in value if category(letter) in UNSEEN), None):
        raise InvalidInput(
            "run.name_unseen",
            f"The name holds the character U+{ord(unseen):04X}, which nobody can see. Leave it out.",
            field=field,
        )


def _free_slug(name: str) -> str:
    """Return a slug made from `name` that no entrant has; the unique constraint guards the race."""
    base = slugify(name)[:120] or "entrant"
    taken = set(Entrant.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    if base not in taken:
        return base
    return next(f"{base}-{n}" for n in range(2, len(taken) + 3) if f"{base}-{n}" not in taken)
