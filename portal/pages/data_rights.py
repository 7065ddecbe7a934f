"""What a person may demand of us: a copy of all that is theirs, and its erasure."""

from __future__ import annotations

import json
import secrets
import zipfile
from collections.abc import Iterator
from typing import IO, Any, cast

from django.core.files.storage import default_storage
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Count, Q
from django.forms import model_to_dict
from django.utils import timezone

from evaluator.models import Artifact, Attempt, Rescore, Share
from portal.accounts.models import User
from portal.core.errors import Conflict, NotAllowed
from portal.pages.results import without_private_parts
from portal.submissions.models import Appeal, AuditEvent, Entrant, ModelRun, Submission
from portal.submissions.services import cancel
from portal.submissions.states import LIVE, State, Verdict

ERASED = "The author deleted their account: only the figures were kept."


class _Sink:
    """What `zipfile` writes to: hands the bytes on and forgets them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        got, self._parts = b"".join(self._parts), []
        return got


def archive(*, of: User) -> Iterator[bytes]:
    """Stream a zip of everything a person has here: account.json, and per submission its facts and its source."""
    sink = _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("account.json", _json(_account(of)))
        yield sink.taken()
        for row in Submission.objects.filter(author=of).with_names().order_by("created_at").iterator(50):
            folder = f"submissions/{row.created_at:%Y%m%d-%H%M%S}_{row.problem.slug}_{str(row.pk)[:8]}"
            bundle.writestr(f"{folder}/submission.json", _json(_submission(row)))
            if row.source:
                with row.source.open("rb") as stream:
                    name = "solution.zip" if str(row.source.name).endswith(".zip") else "solution.py"
                    bundle.writestr(f"{folder}/{name}", stream.read())
            for kept in Artifact.objects.filter(attempt__submission=row).select_related("attempt"):
                with kept.file.open("rb") as stream:
                    bundle.writestr(f"{folder}/attempt{kept.attempt.number}_{kept.name}", stream.read())
            yield sink.taken()
    yield sink.taken()


def _json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, indent=1, ensure_ascii=False) + "\n"


def _account(of: User) -> dict[str, Any]:
    person = ("id", "username", "email", "first_name", "last_name", "date_joined", "last_login", "is_staff")
    token = ("name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
    event = ("at", "action", "object_type", "object_id", "before", "after", "reason")
    appeal = ("submission_id", "ground", "text", "created_at", "state", "answer", "answered_at")
    entrant = ("id", "kind", "name", "slug", "vendor", "open_weights", "reasoning", "created_at")
    return {
        "exported_at": timezone.now(),
        "person": {name: getattr(of, name) for name in person},
        "tokens": list(of.api_tokens.values(*token)),
        "entrants": list(of.entrants.values(*entrant)),
        "runs": [
            model_to_dict(run) | {"created_at": run.created_at}
            for run in ModelRun.objects.filter(entrant__owner=of)
        ],
        "appeals": list(Appeal.objects.filter(author=of).values(*appeal)),
        "audit": list(AuditEvent.objects.filter(actor=of).values(*event)),
    }


def _submission(row: Submission) -> dict[str, Any]:
    hidden = ("source", "problem", "target", "run", "author", "idempotency_key", "request_digest")
    facts = {field.name: getattr(row, field.attname) for field in row._meta.concrete_fields}
    attempts = row.attempts.order_by("number").values(
        "number", "leased_at", "finished_at", "exit_reason", "result", "log", "triage"
    )
    named = {"problem": row.problem.slug, "target": row.target.slug, "run": str(row.run)}
    return {k: v for k, v in facts.items() if k not in hidden} | named | {"attempts": list(attempts)}


def _kept() -> Q:
    """What stays without its author: finished scores that boards and runs count, shown or as a tombstone."""
    counted = Q(mode="score", state=State.DONE.value, results_public=True)
    return counted & ~Q(verdict=Verdict.INFRA_ERROR.value)


def what_erasure_does(*, of: User) -> tuple[int, int]:
    """Return how many submissions would be deleted and how many would stay without a name."""
    mine = Submission.objects.filter(author=of)
    kept = mine.filter(_kept()).count()
    return mine.count() - kept, kept


@transaction.atomic
def erase(*, by: User) -> None:
    """Erase a person's account: sources, logs, names, address, tokens and texts, at once and for good.

    Finished scores stay on the boards without a name, since the places of others depend on them; everything
    else is deleted. The audit log says when it happened. Raises NotAllowed for staff, Conflict while one of
    the submissions is being scored again.
    """
    person = User.objects.select_for_update().get(pk=by.pk)
    if person.is_staff:
        raise NotAllowed("account.staff", "Staff accounts are deleted by other staff, under Admin.")
    mine = Submission.objects.filter(author=person)
    if Rescore.objects.filter(submission__in=mine, state=Rescore.State.RUNNING).exists():
        raise Conflict(
            "account.busy", "One of your submissions is being scored again. Try again in a minute."
        )
    for row in mine.filter(state__in=[state.value for state in LIVE]):
        cancel(by=person, submission=row, reason="account deleted")
    artifacts = Artifact.objects.filter(attempt__submission__in=mine)
    files = [
        *mine.exclude(source="").values_list("source", flat=True),
        *artifacts.values_list("file", flat=True),
    ]
    deleted, kept = what_erasure_does(of=person)
    Appeal.objects.filter(author=person).delete()
    artifacts.delete()
    mine.exclude(_kept()).delete()
    _strip(mine.filter(_kept()))
    _nameless_entrants(person)
    _nameless_person(person)
    AuditEvent.objects.filter(actor=person).exclude(reason="").update(reason="")
    AuditEvent.objects.create(
        actor=person,
        action="account.erased",
        object_type="user",
        object_id=str(person.pk),
        after={"submissions_deleted": deleted, "submissions_kept_without_name": kept},
    )
    transaction.on_commit(lambda: _delete_files(files))


def _delete_files(names: list[str]) -> None:
    for name in names:
        default_storage.delete(name)


def _strip(rows: Any) -> None:
    """Take everything from kept submissions that the author wrote or that quotes it."""
    orders = Rescore.objects.filter(submission__in=rows, state=Rescore.State.QUEUED)
    orders.update(state=Rescore.State.FAILED, finished_at=timezone.now())
    for attempt in Attempt.objects.filter(submission__in=rows).iterator(50):
        attempt.result = _stripped(attempt.result)
        attempt.log, attempt.triage = "", None
        attempt.save(update_fields=["result", "log", "triage"])
    rows.exclude(verdict=Verdict.CORRECT.value).update(message=ERASED)
    rows.update(
        source="",
        source_name="",
        source_public=False,
        removed_reason="",
        idempotency_key="",
        request_digest="",
        parent=None,
    )


def _stripped(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a result, and its cells, without what tells of the source."""
    if result is None:
        return None
    kept = without_private_parts(result)
    for part in (kept, *kept.get("cells", ())):
        if part.get("verdict") != "correct":
            part["message"] = ERASED
    return kept


def _nameless_entrants(person: User) -> None:
    """Delete runs and entrants that hold nothing any more; take the names of people and teams from the rest."""
    runs = ModelRun.objects.filter(entrant__owner=person).annotate(held=Count("submissions"))
    runs.filter(held=0).delete()
    Entrant.objects.filter(owner=person).annotate(held=Count("runs")).filter(held=0).delete()
    ModelRun.objects.filter(entrant__owner=person).update(link="")
    for entrant in person.entrants.exclude(kind=Entrant.Kind.MODEL):
        Entrant.objects.filter(pk=entrant.pk).update(
            name="deleted account", slug=f"deleted-{entrant.pk}-{secrets.token_hex(3)}", vendor=""
        )
    person.entrants.update(owner=None)


def _nameless_person(person: User) -> None:
    """Leave a row that names nobody and that nobody can sign in to."""
    person.api_tokens.all().delete()
    Share.objects.filter(user=person).delete()
    person.groups.clear()
    person.user_permissions.clear()
    person.username = f"deleted-{person.pk}-{secrets.token_hex(3)}"
    person.email = person.first_name = person.last_name = ""
    person.last_login = None
    person.is_active = False
    person.set_unusable_password()
    person.save()
