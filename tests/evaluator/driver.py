"""The other side of a real-process test: sits on the same database and broker, obeys JSON lines.

Started by ``world.World`` as ``python -m tests.evaluator.driver``; each line on stdin is
``{"do": NAME, ...arguments}`` and gets one line back. It uses the services, as web processes do.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
import threading
import time
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from evaluator import services  # noqa: E402
from evaluator.models import Attempt, Host  # noqa: E402
from evaluator.runner import run_lease  # noqa: E402
from leaderboard.models import Score  # noqa: E402
from portal.accounts.models import User  # noqa: E402
from portal.accounts.services import create_token  # noqa: E402
from portal.submissions.doorbell import ring  # noqa: E402
from portal.submissions.models import Submission  # noqa: E402
from portal.submissions.states import State  # noqa: E402
from portal.submissions.transitions import move  # noqa: E402
from tests.evaluator import build  # noqa: E402

_pause = threading.Event()


def do_setup() -> None:
    call_command("migrate", verbosity=0)
    build.target()
    build.problem()


def do_submit(text: str, rings: bool = True, **fields: Any) -> str:
    row = build.submission(text, **fields)
    if rings:
        ring("cpu4")
    return str(row.pk)


def do_cancel(id: str) -> None:
    move(submission_id=id, to=State.CANCELLED)


def do_look(id: str) -> dict[str, Any]:
    row = Submission.objects.get(pk=id)
    # Those for the first verdict: a new best is measured again at once, as soon as a host is free.
    attempts = Attempt.objects.filter(submission=row, rescore=None).order_by("number")
    return {
        "state": row.state,
        "verdict": row.verdict,
        "stage": row.stage,
        "attempts": [a.exit_reason for a in attempts],
        "heartbeats": [(a.heartbeat_at - a.leased_at).total_seconds() for a in attempts],
        "times": [(a.leased_at.timestamp(), a.finished_at.timestamp()) for a in attempts if a.finished_at],
        "scores": Score.objects.filter(submission=row).count(),
    }


def do_wait(id: str, states: list[str], timeout_s: float, scores: int = 0) -> dict[str, Any]:
    """Wait for a state and for as many scores (they follow on commit); returns the last look in any case."""
    start = time.monotonic()
    while True:
        seen = do_look(id)
        seen["took_s"] = time.monotonic() - start
        if (seen["state"] in states and seen["scores"] >= scores) or seen["took_s"] > timeout_s:
            return seen
        _pause.wait(0.02)


def do_hosts() -> list[dict[str, Any]]:
    now = timezone.now()
    return [
        {
            "name": h.name,
            "state": h.state,
            "silent_s": (now - h.last_seen).total_seconds(),
            "stopped": h.stopped_at is not None,
        }
        for h in Host.objects.order_by("name")
    ]


def do_prepare() -> str:
    """The real catalogue and a user; returns the user's token."""
    call_command("migrate", verbosity=0)
    call_command("sync_catalog", verbosity=0, stdout=sys.stderr)
    return create_token(by=User.objects.create(username="ada"), name="test").key


def do_post_file(token: str, path: str, **fields: Any) -> dict[str, Any]:
    """Send a file through the public API, as curl would."""
    with open(path, "rb") as file:
        answer = Client().post(
            "/api/v1/submissions/", {"file": file, **fields}, headers={"Authorization": f"Token {token}"}
        )
    return {"status": answer.status_code, "location": answer.headers.get("Location"), **answer.json()}


def do_publish(path: str, problem: str, result: dict[str, Any], name: str) -> dict[str, Any]:
    """Send a file under a run and entrant called `name`, and let a host answer with `result`."""
    author, _ = User.objects.get_or_create(username="mallory")
    client = Client(raise_request_exception=False)
    client.force_login(author)
    run = client.post("/api/v1/runs/", {"entrant_name": name, "run_name": name, "harness": "single-shot"})
    fields = {"run": run.json()["id"]} if run.status_code == 201 else {}
    with open(path, "rb") as file:
        sent = client.post(
            "/api/v1/submissions/",
            {"file": file, "problem": problem, "target": "cpu4", "mode": "score", **fields},
        )
    if sent.status_code == 202:
        _answer(result)
    return {"run": run.status_code, "sent": sent.status_code, "id": sent.json().get("id", "")}


class _Recorded:
    """A judge that has judged already."""

    shutting_down = False

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result

    def score(self, **_: Any) -> dict[str, Any]:
        return self.result

    def should_stop(self) -> bool:
        return False

    def close(self) -> None:
        return None


def _answer(result: dict[str, Any]) -> None:
    """Work off the queue, the second measurement of a new best too, with the same result."""
    told = _Recorded(result)
    host = services.register_host(name="recorded", target="cpu4")
    while (lease := services.lease(host=host)) is not None:
        run_lease(judge=told, lease=lease, watch=told)


def do_crawl(starts: list[str], within: list[str]) -> list[dict[str, Any]]:
    """Every page of `starts`, and every address on them that holds one of the words `within`."""
    staff, _ = User.objects.get_or_create(username="staff", defaults={"is_staff": True, "is_superuser": True})
    client = Client(raise_request_exception=False)
    client.force_login(staff)
    waiting, pages = list(starts), {}
    while waiting:
        path = waiting.pop()
        if path in pages:
            continue
        answer = client.get(path)
        body = (b"".join(answer) if answer.streaming else answer.content).decode("utf-8", "replace")
        pages[path] = {"path": path, "status": answer.status_code, "body": body,
                       "type": answer.headers.get("Content-Type", "").partition(";")[0]}  # fmt: skip
        found = re.findall(r'(?:href|src|hx-get)="(/[^"#]*)', body) if "html" in pages[path]["type"] else []
        waiting += [html.unescape(link) for link in found if any(word in link for word in within)]
    return list(pages.values())


def do_get(path: str, token: str = "") -> Any:
    headers = {"Authorization": f"Token {token}"} if token else {}
    answer = Client().get(path, headers=headers)
    kind = answer.headers["Content-Type"]
    return {
        "status": answer.status_code,
        "body": answer.json() if "json" in kind else answer.content.decode(),
    }


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        answer = globals()[f"do_{request.pop('do')}"](**request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    connection.close()


if __name__ == "__main__":
    main()
