"""How far a run is on a target: per problem what was sent for boards, judged and found correct."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from portal.accounts.models import User
from portal.submissions.models import ModelRun, Submission
from portal.submissions.states import Mode, State
from problems.models import Problem, Target


@dataclass(frozen=True, slots=True)
class ProblemProgress:
    """One problem of a run: counts of the submissions that hold samples, and the newest of them."""

    problem: Problem
    sent: int = 0
    judged: int = 0
    correct: int = 0
    samples: int = 0
    highest: int = -1
    newest: Submission | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The problems that count for the model board, sent or not, and what was sent beside them.

    `uncounted`: how many files were sent in other modes than `score` and not cancelled.
    """

    track: tuple[ProblemProgress, ...]
    others: tuple[ProblemProgress, ...]
    uncounted: int

    @property
    def rows(self) -> tuple[ProblemProgress, ...]:
        """All of them."""
        return self.track + self.others

    @property
    def k(self) -> int:
        """Samples a problem that figures of the run are taken over: as many as any problem has."""
        return 1 + max((row.highest for row in self.rows), default=-1)

    @property
    def short(self) -> int:
        """Problems of the track that were sent, but with fewer samples: what they lack counts as failed."""
        return sum(0 < row.samples < self.k for row in self.track)

    @property
    def missing(self) -> list[ProblemProgress]:
        """Problems of the track of which nothing was sent."""
        return [row for row in self.track if not row.sent]

    @property
    def problems_sent(self) -> int:
        """How many problems of the track have a submission."""
        return len(self.track) - len(self.missing)

    @property
    def judged(self) -> int:
        """How many problems of the track have a verdict."""
        return sum(row.judged > 0 for row in self.track)

    @property
    def solved(self) -> int:
        """How many problems of the track have a correct submission."""
        return sum(row.correct > 0 for row in self.track)

    @property
    def waiting(self) -> int:
        """How many submissions have no verdict yet."""
        return sum(row.sent - row.judged for row in self.rows)


def progress_of(run: ModelRun, target: Target) -> RunProgress:
    """Return how far a run is on a target."""
    every = Submission.objects.filter(run=run, target=target)
    sent = every.holding_samples()
    counts = {row.pop("problem"): row for row in sent.counts_by("problem")}
    last = sent.filter(problem=OuterRef("pk")).order_by("-created_at", "-id")
    names = dict(
        Problem.objects.filter(pk__in=counts)
        .annotate(last=Subquery(last.values("pk")[:1]))
        .values_list("pk", "last")
    )
    newest = Submission.objects.in_bulk(names.values())
    track = list(Problem.objects.active().of_track().for_lists().order_by("number"))
    beside = Problem.objects.for_lists().filter(pk__in=counts.keys() - {row.pk for row in track})

    def row(problem: Problem) -> ProblemProgress:
        known = counts.get(problem.pk)
        return (
            ProblemProgress(problem, **known, newest=newest[names[problem.pk]])
            if known
            else ProblemProgress(problem)
        )

    return RunProgress(
        tuple(map(row, track)),
        tuple(map(row, beside.order_by("number"))),
        every.exclude(mode=Mode.SCORE).exclude(state=State.CANCELLED).count(),
    )


def own_results(user: User) -> dict[int, str]:
    """Return `solved` or `tried` by primary key of the problems of which `user` sent anything.

    Solved is what a run's page and the boards call so: correct for a board, and not removed.
    """
    mine = Submission.objects.filter(author=user)
    sent = mine.exclude(state=State.CANCELLED).order_by().values_list("problem", flat=True).distinct()
    samples = {row["problem"]: row["correct"] for row in mine.holding_samples().counts_by("problem")}
    return {problem: "solved" if samples.get(problem) else "tried" for problem in sent}


def targets_of(run: ModelRun) -> list[Target]:
    """Return the targets that a run was sent to, the one with most of it first."""
    counts = Submission.objects.filter(run=run).holding_samples().counts_by("target")
    known = Target.objects.in_bulk([row["target"] for row in counts])
    return [known[row["target"]] for row in sorted(counts, key=lambda row: (-row["sent"], row["target"]))]
