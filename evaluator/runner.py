"""Judge what a lease grants: source out, sizes through the judge, result in. Runs in a worker process."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from evaluator import selectors, services
from evaluator.harness.errors import JudgeFault, NoSandbox, SizeTooLarge, Stopped
from evaluator.harness.sandbox import HostReport
from evaluator.harness.source import BadFile
from evaluator.queues import PROTOCOLS
from evaluator.results import combine, log_text, storable
from evaluator.services import Lease
from portal.submissions.models import Submission

log = logging.getLogger(__name__)

StageCall = Callable[[str, dict[str, Any]], None]
ArtifactCall = Callable[[str, bytes], None]


class Judge(Protocol):
    """The part of ``evaluator.harness.judge.Judge`` that the queue uses."""

    host: HostReport

    def score(
        self,
        *,
        problem: str,
        solution: Path,
        size: str,
        protocol: str,
        on_stage: StageCall | None = None,
        on_artifact: ArtifactCall | None = None,
        should_stop: Callable[[], bool] | None = None,
        noise_floor: float = ...,
    ) -> dict[str, Any]: ...

    def prepare(self, *, problem: str, solution: Path) -> bool: ...

    def unfit(self) -> list[str]: ...

    def close(self) -> None: ...


def make_judge(dotted_path: str, target: str) -> Judge:
    """Make the judge that the settings name; this starts its templates."""
    judge: Judge = import_string(dotted_path)(target=target)
    return judge


class Watch(Protocol):
    """What the worker knows about the lease it is working on (see evaluator.pulse)."""

    def should_stop(self) -> bool: ...
    @property
    def shutting_down(self) -> bool: ...


def run_lease(*, judge: Judge, lease: Lease, watch: Watch) -> bool:
    """Judge one submission and store how it ended.

    Returns False when the fault was ours: the caller tests the host and settles the lease by
    ``fail_infra``. Any other end is stored here.
    """
    submission = lease.submission
    try:
        cells = _judge_cells(judge, lease, watch)
    except Stopped:
        if watch.shutting_down:
            services.release(token=lease.token)
        else:
            services.stop_cancelled(token=lease.token)
        return True
    except (NoSandbox, SizeTooLarge, BadFile) as refusal:
        services.refuse_on_host(token=lease.token, code=refusal.code, message=str(refusal))
        return True
    stored = services.complete(
        token=lease.token,
        result=storable(combine(cells)),
        log_text=log_text(combine(cells).get("log")),
        harness_version=str(cells[0].get("harness_version") or ""),
    )
    if not stored:
        log.warning("the result of %s came too late: the lease was gone", submission.pk)
    return True


def sources_folder() -> Path:
    """Where sources lie while they are judged. A worker that is killed leaves its last one; the next removes it."""
    folder = Path(settings.VAR_DIR) / "run" / "sources"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def prepare_next(judge: Judge, target_id: int) -> None:
    """Name the judge what waits next, so that it can be built meanwhile. Nothing that goes wrong here matters."""
    for submission in selectors.upcoming(target_id):
        try:
            with tempfile.TemporaryDirectory(dir=sources_folder()) as folder:
                path = fetch_source(submission, Path(folder))
                judge.prepare(problem=submission.problem.slug, solution=path)
        except (JudgeFault, OSError, ValueError):
            log.warning("%s is not built ahead", submission.pk, exc_info=True)


def _judge_cells(judge: Judge, lease: Lease, watch: Watch) -> list[dict[str, Any]]:
    """Judge the sizes one after the other; the first that fails ends it, since it decides."""
    submission = lease.submission
    stages = _StageRecorder(lease)
    cells: list[dict[str, Any]] = []

    def keep(name: str, content: bytes) -> None:
        if not services.keep_artifact(token=lease.token, name=name, content=content):
            log.warning("%s of %s was not kept", name, submission.pk)

    floor = selectors.noise_floor(problem_id=submission.problem_id, host_id=lease.host_id)
    with tempfile.TemporaryDirectory(dir=sources_folder()) as folder:
        path = fetch_source(submission, Path(folder))
        for size in sizes_of(submission):
            stages.size = size
            cell = judge.score(
                problem=submission.problem.slug,
                solution=path,
                size=size,
                protocol=PROTOCOLS[submission.mode],
                on_stage=stages,
                on_artifact=keep,
                should_stop=watch.should_stop,
                noise_floor=floor,
            )
            cells.append(cell)
            if cell["verdict"] != "correct":
                break
    return cells


def sizes_of(submission: Submission) -> list[str]:
    """Sizes to judge: the one asked for, else all ranked cells (score) or the first (other modes)."""
    if submission.size:
        return [submission.size]
    cells = list(submission.target.cells)
    return cells if submission.mode == "score" else cells[:1]


def fetch_source(submission: Submission, folder: Path) -> Path:
    """Copy the stored file to the host and return its path; JudgeFault when it is not what was sent."""
    with submission.source.open("rb") as stored:
        data = stored.read()
    if hashlib.sha256(data).hexdigest() != submission.source_sha256:
        raise JudgeFault("The stored file is not the one that was sent: its SHA-256 differs.")
    # By the name that the door stored it under, once it had looked inside: the author's own may end in anything.
    path = folder / f"solution{Path(str(submission.source.name)).suffix}"
    path.write_bytes(data)
    return path


class _StageRecorder:
    """Stores each stage once, when it is entered; progress inside a stage is not worth a write."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.size = ""
        self._last: tuple[str, str] | None = None

    def __call__(self, stage: str, detail: dict[str, Any]) -> None:
        if (self.size, stage) == self._last:
            return
        self._last = (self.size, stage)
        services.set_stage(
            token=self.lease.token, stage=stage[:20], detail=storable({"size": self.size, **detail})
        )
