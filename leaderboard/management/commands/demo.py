"""`make demo`: the whole product on one machine, from nothing to measured rows."""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from evaluator.harness.samples import all_samples
from leaderboard import demo
from portal.accounts.models import User
from portal.accounts.services import create_token, find_token
from portal.submissions.models import ModelRun
from portal.submissions.runs import set_verified
from problems.models import Problem


class Command(BaseCommand):
    """Migrate, load the catalogue, start web and worker, submit the samples, print, serve."""

    help = "Run the portal and one evaluator on this machine and have the bundled samples judged."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=demo.FIRST_PORT, help="port to serve on (8000)")
        parser.add_argument("--once", action="store_true", help="end after the results are printed")

    def handle(self, *args: Any, **options: Any) -> None:
        self._children: list[demo.Child] = []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # A shell that starts us in the background has us ignore Ctrl-C; we want to hear it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            as_expected = self._run(options["port"], once=options["once"])
        except demo.DemoFailed as failure:
            raise CommandError(str(failure)) from None
        except KeyboardInterrupt:
            self.stdout.write("\nStopping: the evaluator ends its job…")
            self.stdout.flush()
            self._stop()
            self.stdout.write("Stopped.")
            return
        finally:
            self._stop()
        if options["once"] and not as_expected:
            raise CommandError("Not every sample got the verdict that its manifest expects.")

    def _stop(self) -> None:
        for child in reversed(self._children):
            child.stop()

    def _run(self, wanted_port: int, *, once: bool) -> bool:
        keys = self._prepare()
        base = f"http://127.0.0.1:{demo.free_port(wanted_port)}"
        self._start(base)
        client = demo.Client(base, keys["token"])
        client.wait_until_up(self._children)
        # Now, not with the results: they may take 20 minutes, and the site can be used meanwhile.
        self.stdout.write(f"The portal answers at {base}/ .\n{_login(keys)}\nAPI token   {keys['token']}")
        self.stdout.write("Submitting the samples through the portal's API …")
        self.stdout.flush()
        jobs = self._judge(client)
        self._report(jobs, base, keys)
        if once:
            self.stdout.write(
                "\nIt ends here, as --once asks: the addresses above answer while `make demo` serves."
            )
        else:
            self.stdout.write("\nServing. Ctrl-C ends it all.")
            self._children[0].process.wait()
            self._children[0].check()
        return all(job.as_expected for job in jobs)

    def _prepare(self) -> dict[str, str]:
        """Bring database, catalogue and demo user up to date; return the user's keys."""
        self.stdout.write(f"Everything of the demo lives in {settings.VAR_DIR}.")
        call_command("migrate", verbosity=0)
        call_command("sync_catalog", stdout=self.stdout)
        for key in ("data_folder_in", "processed_folder", "control_folder"):
            folder = settings.CELERY_BROKER_TRANSPORT_OPTIONS.get(key)
            if folder:
                Path(folder).mkdir(parents=True, exist_ok=True)
        keys = _demo_keys(Path(settings.VAR_DIR) / "demo.json")
        connections.close_all()  # children and waiting need none of ours
        return keys

    def _start(self, base: str) -> None:
        """Start web and worker; they end with this process."""
        logs = Path(settings.VAR_DIR) / "log"
        address = base.removeprefix("http://")
        web = [
            sys.executable, "-m", "gunicorn", "portal.wsgi:application", "--bind", address,
            "--workers", "2", "--threads", "4", "--worker-class", "gthread", "--timeout", "90",
            "--no-control-socket",
        ]  # fmt: skip
        worker = [
            sys.executable,
            str(settings.BASE_DIR / "manage.py"),
            "evaluator_worker",
            "--target",
            "cpu4",
        ]
        env = demo.environment(Path(settings.VAR_DIR))
        self._children.append(demo.Child("evaluator worker", worker, env, logs / "worker.log"))
        self._children.append(demo.Child("web server", web, env, logs / "web.log"))

    def _judge(self, client: demo.Client) -> list[demo.Job]:
        samples = all_samples()
        revisions = dict(Problem.objects.values_list("slug", "score_revision"))
        connections.close_all()
        runs = {name: client.run_of(name) for name in sorted({sample.entrant for sample in samples})}
        _vouch_for(runs.values())
        jobs = [
            demo.submit(client, sample, runs[sample.entrant], revisions[sample.problem]) for sample in samples
        ]
        reused = sum(job.reused for job in jobs)
        if reused:
            self.stdout.write(f"{reused} of {len(jobs)} were judged by an earlier run of the demo.")
        done = 0

        def say(job: demo.Job) -> None:
            nonlocal done
            done += 1
            self.stdout.write(f"  [{done:2}/{len(jobs)}] {job.sample.file}: {job.code or job.state}")
            self.stdout.flush()

        demo.wait_for(client, jobs, self._children, say)
        return jobs

    def _report(self, jobs: list[demo.Job], base: str, keys: dict[str, str]) -> None:
        self.stdout.write(f"\n{demo.table(jobs)}\n")
        if any((job.result or {}).get("isolation_grade") == "none" for job in jobs):
            self.stdout.write(
                "Isolation grade “none”: this machine has no usable bubblewrap, so nothing was sandboxed and\n"
                "only the bundled samples are accepted. To lift that: "
                + ("sudo " if shutil.which("sudo") else "as root: ")
                + "apt-get install bubblewrap\n"
            )
        self.stdout.write(
            f"Boards      {base}/boards/cpu4/\n"
            f"Models      {base}/boards/models/?target=cpu4\n"
            f"{_login(keys)}\n"
            f"Your turn   curl -H 'Authorization: Token {keys['token']}' -F file=@my_solution.py \\\n"
            f"                 -F problem=allreduce -F target=cpu4 {base}/api/v1/submissions/"
        )


def _login(keys: dict[str, str]) -> str:
    return f"Log in as   {keys['user']} / {keys['password']}"


def _vouch_for(runs: Iterable[int]) -> None:
    """The demo's operator vouches for its invented entrants, so that the model board shows them."""
    operator, made = User.objects.get_or_create(username="demo-operator", defaults={"is_staff": True})
    if made:
        operator.set_unusable_password()
        operator.save(update_fields=["password"])
    for run in ModelRun.objects.filter(pk__in=list(runs), verified=False):
        set_verified(by=operator, run=run, verified=True, reason="invented entrant of the demo")
    connections.close_all()


def _demo_keys(path: Path) -> dict[str, str]:
    """Return name, password and token of the demo user, kept in a file that only its owner can read."""
    if path.exists():
        keys: dict[str, str] = json.loads(path.read_text())
        if find_token(keys["token"]) is not None:
            return keys
    user = User.objects.filter(username="demo").first() or User(username="demo", email="demo@example.org")
    password = secrets.token_urlsafe(9)
    user.set_password(password)
    user.save()
    token = create_token(by=user, name=f"demo {secrets.token_hex(3)}")
    keys = {"user": "demo", "password": password, "token": token.key}
    path.touch(mode=0o600)
    path.write_text(json.dumps(keys))
    return keys
