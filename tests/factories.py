"""Rows for tests. What a test is about it passes itself; the rest is filled in here."""

import hashlib
import json
from datetime import timedelta
from typing import Any

import factory
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.models import Artifact, Attempt, Host
from portal.accounts.models import User
from portal.accounts.services import create_token
from portal.submissions.models import Entrant, ModelRun, Submission
from portal.submissions.runs import ensure_personal_run
from problems.models import Problem, Target

GOOD = """\
import torch.distributed as dist


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""

SPEC: dict[str, Any] = {
    "signature": "solution(tensor: torch.Tensor) -> torch.Tensor",
    "semantics": "The sum over all ranks.",
    "oddities": [],
    "world_sizes": [2, 4, 8],
    "sizes": {"tiny": {"M": 64, "N": 32}, "default": {"M": 1024, "N": 1024}},
    "arguments": [
        {
            "name": "tensor",
            "kind": "tensor",
            "role": "dynamic",
            "shape": "(M, N)",
            "dtype": "bfloat16",
            "description": "The addend.",
        }
    ],
    "outputs": [
        {
            "name": "out",
            "shape": "(M, N)",
            "dtype": "bfloat16",
            "ranks": "the same on every rank",
            "description": "",
            "tolerance": {"atol": 0.0625},
        }
    ],
    "phases": [],
    "roofline": {"cpu4": {"tiny": {"t_roof_us": 1.2, "bound": "nvlink", "phases": []}}},
    "reference": GOOD,
}


class UserFactory(factory.django.DjangoModelFactory[User]):
    """A person with the password `a-long-password`."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    password = factory.django.Password("a-long-password")


class ProblemFactory(factory.django.DjangoModelFactory[Problem]):
    """The problem `allreduce`, with one argument."""

    class Meta:
        model = Problem
        django_get_or_create = ("slug",)

    slug = "allreduce"
    number = factory.LazyFunction(lambda: Problem.objects.count() + 1)
    title = factory.LazyAttribute(lambda o: o.slug.replace("_", " ").capitalize())
    level = 1
    domain = "general"
    parallelism = factory.LazyFunction(lambda: ["data", "tensor"])
    collectives = factory.LazyFunction(lambda: ["all_reduce"])
    bound = "nvlink"
    summary = "Add up one tensor over all ranks."
    score_revision = "abc123"
    roofline_revision = "def456"
    spec = factory.LazyFunction(lambda: dict(SPEC))


class TargetFactory(factory.django.DjangoModelFactory[Target]):
    """The target `cpu4`."""

    class Meta:
        model = Target
        django_get_or_create = ("slug",)

    slug = "cpu4"
    title = "4 gloo ranks on CPU"
    ranks = 4
    backend = "gloo"
    cells = factory.LazyFunction(lambda: ["tiny"])
    ranked = True
    spec = factory.LazyFunction(lambda: {"device": "cpu", "official": False})


def token(user: User, **fields: Any) -> str:
    """Return a new key of a user."""
    fields.setdefault("name", f"token {user.api_tokens.count()}")
    return create_token(by=user, **fields).key


def model_run(owner: User, **fields: Any) -> ModelRun:
    """Return a run of a model that `owner` owns."""
    number = Entrant.objects.count()
    entrant = Entrant.objects.create(
        kind="model", name=f"model {number}", slug=f"model-{number}", owner=owner
    )
    return ModelRun.objects.create(
        entrant=entrant, **{"name": "run 1", "slug": "run-1", "harness": "single-shot", **fields}
    )


def submission(author: User | None = None, text: str = GOOD, **fields: Any) -> Submission:
    """Return a queued submission with its file, or one in the state given."""
    author = author or UserFactory()
    run = fields.pop("run", None) or ensure_personal_run(by=author)
    values: dict[str, Any] = {
        "problem": fields.pop("problem", None) or ProblemFactory(),
        "target": fields.pop("target", None) or TargetFactory(),
        "mode": "score",
        "state": "queued",
        "queued_at": timezone.now(),
        "source_name": "solution.py",
        "source_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "source_bytes": len(text),
        "sample": Submission.objects.count(),
    }
    row = Submission(author=author, run=run, **(values | fields))
    row.source.save("solution.py", ContentFile(text.encode()), save=False)
    row.save(force_insert=True)
    return row


def judged(author: User | None = None, verdict: str = "correct", **fields: Any) -> Submission:
    """Return a submission that is done, with its attempt and result."""
    parts = fields.pop("result", {})
    now = timezone.now()
    row = submission(
        author,
        state="done",
        verdict=verdict,
        code=fields.pop("code", verdict),
        message=fields.pop("message", "All trials and all timed calls agree."),
        started_at=now - timedelta(seconds=4),
        finished_at=now,
        **fields,
    )
    host, _ = Host.objects.get_or_create(
        name="host-a", defaults={"target": row.target, "registered_at": now, "last_seen": now}
    )
    names = ("received", "building", "starting", "correctness", "warmup", "timing", "reporting")
    Attempt.objects.create(
        submission=row,
        host=host,
        number=1,
        leased_at=now - timedelta(seconds=4),
        heartbeat_at=now,
        lease_expires_at=now,
        finished_at=now,
        exit_reason="scored",
        stages=[
            {"stage": name, "at": (now - timedelta(seconds=4 - 0.5 * i)).isoformat()}
            for i, name in enumerate(names)
        ],
        result=result(row, **parts),
        log="── rank 0 ──\nhello from the secret log\n",
        harness_version=PROTOCOL_VERSION,
    )
    return row


def profiled(author: User | None = None, **fields: Any) -> Submission:
    """Return a submission in mode profile that is done, with its trace and timeline."""
    row = judged(author, mode="profile", result={"protocol": "profile"} | fields.pop("result", {}), **fields)
    attempt = row.attempts.get()
    bars = [
        [rank, *bar]
        for rank in range(2)
        for bar in (["call", "phase", 0.0, 90.0, "call"], ["host", "operator", 5.0, 40.0, "aten::mm"])
    ]
    drawn = {
        "call_us": 90.0,
        "kinds": {"phase": "call", "operator": "operators"},
        "bars": bars,
        "left_out": 3,
    }
    for name, content in (("trace.json.gz", b"a trace"), ("timeline.json", json.dumps(drawn).encode())):
        kept = Artifact(attempt=attempt, name=name, bytes=len(content), created_at=timezone.now())
        kept.file.save(f"artifacts/{row.pk}/{name}", ContentFile(content))
    return row


def result(row: Submission, **parts: Any) -> dict[str, Any]:
    """Return a result as the judge writes it."""
    timing = {
        "solution_ms": 0.41,
        "reference_ms": 0.62,
        "speedup": 1.51,
        "speedup_low": 1.43,
        "speedup_high": 1.6,
        "calls": 100,
        "pairs": 20,
        "handshake_ms": 0.05,
    }
    return {
        "schema": 1,
        "harness_version": PROTOCOL_VERSION,
        "problem": {"slug": row.problem.slug, "revision": "abc123", "title": row.problem.title},
        "target": row.target.slug,
        "size": "tiny",
        "input_set": "hardened",
        "protocol": "paper",
        "verdict": row.verdict,
        "code": row.code,
        "message": row.message,
        "rank": None,
        "line": None,
        "trials": [{"ok": True}] * 5,
        "ranks": [{"rank": r, "ok": row.verdict == "correct"} for r in range(row.target.ranks)],
        "stacks": [],
        "timing": timing if row.verdict == "correct" else None,
        "roofline": {"t_roof_ms": 0.0012, "utilisation": 0.003, "bound": "nvlink", "phases": []},
        "memory": {"peak_bytes": 210_000_000, "reference_peak_bytes": 215_000_000},
        "build": {"seconds": 0.0, "cached": False},
        "isolation_grade": "full",
        "environment": {"python": "3.11.7", "torch": "2.13.0", "cpu": "a processor", "cores": 2},
        "flags": [],
        "seeds": {"secret": "424242"},
        "log": {"rank 0": "hello from the secret log"},
        **parts,
    }
