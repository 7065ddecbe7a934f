"""Invented rows for load and layout work: whole tables of them, labelled as synthetic.

Never called by the product itself; ``manage.py seed_board`` refuses any database that is not named for it.
"""

from __future__ import annotations

import json
import math
import random
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from evaluator.harness.version import PROTOCOL_VERSION
from evaluator.models import Attempt, Host
from leaderboard.bulk import Table
from leaderboard.models import BoardCell, RunSummary, Score
from portal.accounts.models import User
from portal.submissions.models import Entrant, ModelRun, Submission
from problems.models import Problem, Target

BATCH = 20000
_FAILURES = ("incorrect", "build_error", "runtime_error", "timeout", "contract_error", "out_of_memory")
_MECHANISMS = ("copy engine", "SM load/store", "NCCL", "TMA", "NVLS multimem")


@dataclass(frozen=True, slots=True)
class Character:
    """How good an invented model is."""

    skill: float
    pace: float
    spread: float


class Seeder:
    """Makes entrants, runs, submissions, attempts and scores in bulk; the same seed, the same rows.

    Use it inside ``bulk.unchecked(Submission, Attempt, Score)`` and call ``finish`` at the end.
    """

    def __init__(self, seed: int = 1) -> None:
        self.draw = random.Random(seed)  # noqa: S311 (invented rows)
        self.problems = list(Problem.objects.active())
        self.now = timezone.now()
        self.author, _ = User.objects.get_or_create(username="synthetic")
        self._hosts: dict[int, Host] = {}
        self._submissions, self._attempts, self._scores = Table(Submission), Table(Attempt), Table(Score)
        self._tables = (self._submissions, self._attempts, self._scores)
        self._places: set[tuple[int, int, str]] = set()

    def model(self, number: int) -> Entrant:
        """An invented model, named as such."""
        return Entrant.objects.create(
            kind=Entrant.Kind.MODEL,
            name=f"Synthetic {number:03}",
            slug=f"synthetic-{number:03}-{uuid.uuid4().hex[:6]}",
            vendor=f"Nobody {chr(65 + number % 6)}",
            open_weights=number % 3 == 0,
            reasoning=number % 2 == 0,
            owner=self.author,
        )

    def run(self, of: Entrant, number: int, *, agentic: bool = False, verified: bool = True) -> ModelRun:
        """An invented campaign."""
        return ModelRun.objects.create(
            entrant=of,
            harness=ModelRun.Harness.AGENTIC if agentic else ModelRun.Harness.SINGLE_SHOT,
            name=f"synthetic run {number}",
            slug=f"synthetic-run-{number}",
            prompt_variant=("plain", "hardware", "cuda")[number % 3],
            date=(self.now - timedelta(days=number * 11)).date(),
            verified=verified,
        )

    def fill(self, run: ModelRun, target: Target, samples: int, *, steps: int = 1) -> int:
        """Submit ``samples`` invented samples per problem, judged at all ranked sizes; returns how many."""
        who = Character(self.draw.betavariate(2, 4), self.draw.gauss(0.0, 0.35), self.draw.uniform(0.3, 0.7))
        for problem in self.problems:
            difficulty = math.log1p(problem.level) / 2
            for sample in range(samples):
                for step in range(steps):
                    chance = who.skill * (1.6 - difficulty) * (1 + step / max(steps, 2))
                    good = self.draw.random() < chance
                    self._one(run, target, problem, (sample, step), good, who)
            if len(self._submissions.rows) >= BATCH:
                self.write()
        for size in target.cells:
            RunSummary(run=run, target=target, size=size, updated_at=self.now).save(force_insert=True)
            self._places |= {(target.pk, problem.pk, size) for problem in self.problems}
        return len(self.problems) * samples * steps

    def write(self) -> None:
        """Write the rows that wait."""
        for table in self._tables:
            table.write()

    def finish(self) -> None:
        """Make the cells of the boards; they and the summaries are due."""
        cells = [BoardCell(target_id=t, problem_id=p, size=size) for t, p, size in sorted(self._places)]
        BoardCell.objects.bulk_create(cells, ignore_conflicts=True)
        BoardCell.objects.update(due=True)

    def _one(
        self,
        run: ModelRun,
        target: Target,
        problem: Problem,
        place: tuple[int, int],
        good: bool,
        who: Character,
    ) -> None:
        at = self.now - timedelta(minutes=self.draw.randint(1, 60 * 24 * 200))
        verdict = "correct" if good else self.draw.choice(_FAILURES)
        pk = uuid.uuid4()
        self._submissions.add(
            id=pk, author_id=self.author.pk, run_id=run.pk, problem_id=problem.pk, target_id=target.pk,
            mode="score", sample=place[0], step=place[1], source_name="synthetic.py", source_sha256="0" * 64,
            source_bytes=0, state="done", verdict=verdict, code=f"{verdict}.synthetic",
            message="An invented row.", created_at=at, queued_at=at, started_at=at, finished_at=at,
        )  # fmt: skip
        attempt = self._attempts.add(
            lease_token=pk, submission_id=pk, host_id=self._host(target).pk, number=1, leased_at=at, heartbeat_at=at,
            lease_expires_at=at, finished_at=at, exit_reason="scored", result='{"synthetic": true}',
            harness_version=PROTOCOL_VERSION, announced_at=at,
        )  # fmt: skip
        for size in target.cells:
            self._scores.add(
                attempt_id=attempt, submission_id=pk, entrant_id=run.entrant_id, run_id=run.pk,
                problem_id=problem.pk, target_id=target.pk, size=size, verdict=verdict, correct=good,
                protocol="paper", noise_floor=0.1, isolation_grade="full", input_set="hardened",
                problem_revision=problem.score_revision, harness_version=PROTOCOL_VERSION, ranked=good,
                created_at=at, **(self._figures(who) if good else {}),
            )  # fmt: skip

    def _figures(self, who: Character) -> dict[str, Any]:
        speedup = math.exp(self.draw.gauss(who.pace, who.spread))
        half = self.draw.uniform(0.01, 0.12)
        reference = self.draw.uniform(0.05, 3.0)
        return {
            "speedup": speedup, "speedup_low": speedup * (1 - half), "speedup_high": speedup * (1 + half),
            "reference_ms": reference, "solution_ms": reference / speedup, "t_roof_ms": reference * 0.3,
            "utilisation": min(0.97, 0.3 * speedup), "bound": "link",
            "peak_bytes": int(self.draw.uniform(1e8, 4e9)), "reference_peak_bytes": int(2e9),
            "mechanisms": json.dumps(self.draw.sample(_MECHANISMS, k=self.draw.randint(1, 2))),
        }  # fmt: skip

    def _host(self, target: Target) -> Host:
        if target.pk not in self._hosts:
            self._hosts[target.pk], _ = Host.objects.get_or_create(
                name=f"synthetic-{target.slug}",
                defaults={
                    "target": target, "registered_at": self.now, "last_seen": self.now, "stopped_at": self.now,
                },
            )  # fmt: skip
        return self._hosts[target.pk]
