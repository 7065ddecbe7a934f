"""The demo's parts: child processes that die with it, a client of the public API, the table it prints."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connections

from evaluator import selectors
from evaluator.harness.samples import Sample
from leaderboard import ranking

FIRST_PORT, LAST_PORT = 8000, 8099
TIE = "tie: within the noise floor of the reference, or not sure to be faster, for the reason in brackets"
_UNSURE = {"below_resolution": "too short", "noisy": "unsteady machine"}
_PR_SET_PDEATHSIG = 1


class DemoFailed(Exception):
    """The demo cannot go on; the message says why and where to look."""


def free_port(wanted: int) -> int:
    """Return the wanted port, or the next free one of the demo's range; DemoFailed when none is."""
    for port in (wanted, *range(FIRST_PORT, LAST_PORT + 1)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise DemoFailed(f"No port from {FIRST_PORT} to {LAST_PORT} is free. Choose one with --port.")


def environment(var: Path) -> dict[str, str]:
    """What the children get: a plain user's run folder lies with the rest of the demo, not in the shared /tmp.

    Root's stays where it is: numbers of users that jobs run as are claimed there for the whole machine.
    """
    plain = {} if os.geteuid() == 0 else {"PKB_RUN_DIR": str(var / "run")}
    return {**plain, **os.environ}


def _die_with_parent() -> None:
    """Runs in the child before exec: the kernel sends it SIGTERM when the demo is gone, however it went."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A process of the demo with its log file."""

    def __init__(self, name: str, command: Sequence[str], env: dict[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                list(command),
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,
                start_new_session=True,  # Ctrl-C reaches the demo alone; it ends its children in order
            )

    def check(self) -> None:
        """DemoFailed when the process has ended."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-1500:]
            raise DemoFailed(f"The {self.name} ended unexpectedly. The end of {self.log}:\n{tail}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when it does not listen for 20 s."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Client:
    """The public API as any user's program sees it."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base
        self.token = token

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send one JSON request and return the JSON answer; DemoFailed with the server's words otherwise."""
        data = None if body is None else json.dumps(body).encode()
        return self._send(method, path, data, {"Content-Type": "application/json"})

    def send_file(self, file: Path, fields: dict[str, Any], key: str) -> Any:
        """Submit a file as ``curl -F file=@…`` does, under an idempotency key."""
        boundary = f"pkb{secrets.token_hex(12)}"
        parts = [_part(f'name="{name}"', str(value).encode()) for name, value in fields.items()]
        parts.append(_part(f'name="file"; filename="{file.name}"', file.read_bytes()))
        line = f"--{boundary}\r\n".encode()
        data = b"".join(line + part for part in parts) + f"--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Idempotency-Key": key}
        return self._send("POST", "/api/v1/submissions/", data, headers)

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
        headers = {"Authorization": f"Token {self.token}", **headers}
        request = urllib.request.Request(  # noqa: S310 (http to our own child)
            f"{self.base}{path}", method=method, data=data, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            words = error.read().decode(errors="replace")[:600]
            raise DemoFailed(f"{method} {path} was answered {error.code}: {words}") from None

    def wait_until_up(self, children: Iterable[Child], timeout_s: float = 60) -> None:
        """Return when the site answers; DemoFailed when a child ends or it takes too long."""
        end = time.monotonic() + timeout_s
        while True:
            for child in children:
                child.check()
            try:
                with urllib.request.urlopen(f"{self.base}/healthz", timeout=5):  # noqa: S310
                    return
            except OSError as error:
                if time.monotonic() > end:
                    raise DemoFailed(f"The site did not answer in {timeout_s:.0f} s: {error}") from None
            time.sleep(0.1)

    def run_of(self, entrant: str) -> int:
        """Return the id of the demo's run of an invented entrant, making both on first use."""
        path: str | None = "/api/v1/runs/"
        while path:
            page = self.call("GET", path)
            for run in page["results"]:
                if (run["entrant"], run["name"]) == (entrant, "demo"):
                    return int(run["id"])
            path = (page.get("next") or "").removeprefix(self.base) or None
        body = {"entrant_name": entrant, "run_name": "demo", "harness": "single-shot", "vendor": "invented"}
        return int(self.call("POST", "/api/v1/runs/", body)["id"])


def _part(disposition: str, content: bytes) -> bytes:
    return f"Content-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


@dataclass
class Job:
    """One sample on its way."""

    sample: Sample
    id: str
    page: str
    reused: bool
    state: str = ""
    verdict: str = ""
    code: str = ""
    message: str = ""
    result: dict[str, Any] | None = None

    @property
    def as_expected(self) -> bool:
        """Whether the judge said what the manifest says."""
        return self.verdict == self.sample.verdict


def submit(client: Client, sample: Sample, run: int, revision: str) -> Job:
    """Send a sample, or find what was sent before: the idempotency key names its content and revision.

    A try that ended by a fault of ours, or was cancelled, is sent again.
    """
    digest = hashlib.sha256(sample.path.read_bytes()).hexdigest()[:16]
    fields = {"problem": sample.problem, "target": "cpu4", "run": run, "source_public": "true"}
    for attempt in range(1, 100):
        key = f"demo-{run}-{revision[:12]}-{digest}-{attempt}"
        answer = client.send_file(sample.path, fields, key)
        if answer["state"] != "cancelled" and answer["verdict"] != "infra_error":
            page = answer["links"]["page"]
            return Job(sample, answer["id"], page, reused=answer["state"] == "done")
    raise DemoFailed(f"{sample.file} ended by faults of ours again and again; see the worker's log.")


class HostCheck:
    """Notices that the evaluator took itself out of service; it may need a minute to test its way back."""

    GRACE_S = 60.0

    def __init__(self) -> None:
        self._since: float | None = None

    def check(self) -> None:
        """DemoFailed when the host has been out of service for longer than the grace."""
        out = [host for host in selectors.hosts() if host.state == "quarantined"]
        connections.close_all()
        now = time.monotonic()
        self._since = (self._since or now) if out else None
        if self._since is not None and now - self._since > self.GRACE_S:
            raise DemoFailed(f"The evaluator failed its own test and left service. {out[0].reason}")


def wait_for(client: Client, jobs: list[Job], children: list[Child], say: Callable[[Job], None]) -> None:
    """Wait for all jobs and tell of each that ends; DemoFailed when nobody is left to judge them."""
    hosts = HostCheck()
    for job in jobs:
        while True:
            for child in children:
                child.check()
            hosts.check()
            seen = client.call("GET", f"/api/v1/submissions/{job.id}/?wait=10")
            job.state, job.verdict = seen["state"], seen["verdict"]
            job.code, job.message = seen["code"], seen["message"]
            if job.state in ("done", "cancelled"):
                break
            time.sleep(0.1)  # politeness in case the server does not hold the request
        job.result = client.call("GET", f"/api/v1/submissions/{job.id}/result/")
        say(job)


def table(jobs: list[Job]) -> str:
    """The results as aligned text, and in the last line how many are as the manifest says."""
    head = ("sample", "problem", "verdict", "expected", "speedup", "95 % interval", "isolation")
    lines = [head, *(_line(job) for job in jobs)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    legend = [TIE] if any(" tie" in line[4] for line in lines) else []
    good = sum(job.as_expected for job in jobs)
    closing = f"{good} of {len(jobs)} ended as expected."
    return "\n".join([text[0], "  ".join("-" * width for width in widths), *text[1:], "", *legend, closing])


def _line(job: Job) -> tuple[str, ...]:
    result = job.result or {}
    timing = result.get("timing") or {}
    speedup, interval = "", ""
    if job.verdict == "correct" and timing.get("speedup"):
        speedup = f"{timing['speedup']:.2f}x{_tie(timing, result.get('flags') or [])}"
        interval = f"{timing['speedup_low']:.2f} to {timing['speedup_high']:.2f}"
    return (
        job.sample.file,
        job.sample.problem,
        job.verdict,
        "as expected" if job.as_expected else f"NOT {job.sample.verdict}",
        speedup,
        interval,
        str(result.get("isolation_grade") or ""),
    )


def _tie(timing: dict[str, Any], flags: list[str]) -> str:
    """Say so, and why, where the board calls it a tie with the reference; else nothing."""
    floor = timing.get("noise_floor") or ranking.DEFAULT_NOISE_FLOOR
    if not ranking.is_tie(ranking.counted_speedup(timing["speedup"], flags), floor):
        return ""
    near = ranking.is_tie(timing["speedup"], floor)
    reasons = [] if near else [_UNSURE[flag] for flag in flags if flag in _UNSURE]
    return f" tie ({', '.join(reasons)})" if reasons else " tie"
