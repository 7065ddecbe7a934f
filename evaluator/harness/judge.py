"""The judge: one score from a file to the result that the portal stores (design section 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from evaluator.harness.ahead import Ahead
from evaluator.harness.builds import Builder
from evaluator.harness.cardslots import demand_cards
from evaluator.harness.errors import JudgeFault, NoSandbox, SizeTooLarge, Unfit
from evaluator.harness.health import look, when_quiet
from evaluator.harness.run import ArtifactCall, Run, Stage, factories_of
from evaluator.harness.samples import bundled_hashes
from evaluator.harness.sandbox import host_grade, self_check
from evaluator.harness.source import solution_files
from evaluator.harness.warm import Pool, Template
from problems.registry import load_problem, load_target

PROTOCOLS = ("check", "quick", "paper", "profile")
UNTIMED = ("check", "profile")


class Judge:
    """Scores files for one target on this host. Keep one per process; it keeps templates warm.

    Must live in one long-lived thread. Not safe for two scores at a time: never two timed jobs on
    one host.
    """

    def __init__(
        self,
        target: str = "cpu4",
        *,
        warm: int = 2,
        shared: bool = False,
        ahead: bool | None = None,
        single: bool = False,
        pool: Pool | None = None,
    ) -> None:
        """`warm` templates are kept waiting. `shared`: other judges use the cards too (nothing is timed).

        `ahead`: build what `prepare` names while another file is scored; by default where there are cards.
        `single`: no other file follows, so no templates are started for one. `pool`: templates begun already.
        """
        self._shared, self._single = shared, single
        self.target = load_target(target)
        if self.target.cards is not None:
            demand_cards(self.target.cards)
        if self.target.device == "cpu":
            # The supervisor's own tensors are small; more threads only wait for each other.
            torch.set_num_threads(1)
        self.host = host_grade()
        if self.host.grade != "none" and (wrong := self_check().problems):
            raise JudgeFault("the sandbox of this host is not tight: " + "; ".join(wrong))
        self._pool = pool or Pool(self.target, warm, isolated=self.host.grade != "none")
        self.builder = Builder(self.target)
        wanted = self.target.device == "cuda" if ahead is None else ahead
        self._ahead = Ahead(self.target, self.builder) if wanted and self.host.grade != "none" else None

    def close(self) -> None:
        """End the warm templates and what is built ahead."""
        if self._ahead is not None:
            self._ahead.close()
        self._pool.close()

    def prepare(self, *, problem: str, solution: Path) -> bool:
        """Have a file that waits built ahead; False where that is not done or there is nothing to build."""
        if self._ahead is None:
            return False
        chosen = load_problem(problem)
        return self._ahead.offer(chosen, {**solution_files(solution), **factories_of(chosen)})

    def built_ahead(self, files: dict[str, bytes]) -> list[Any] | None:
        """The recorded builds of a file that was prepared; None for others."""
        if self._ahead is None:
            return None
        return self._ahead.take(files, float(self.target.data["deadlines"]["build_s"]))

    def stand_still(self) -> None:
        """Nothing is built beside the score at hand from here on: its own builds are done, its times are next."""
        if self._ahead is not None:
            self._ahead.stand_still()

    def start_next(self) -> None:
        """On hosts with cards, start the templates of the file that comes next beside the jobs of this one."""
        if self.target.device == "cuda" and not self._single:
            self._pool.refill()

    def settle(self) -> None:
        """Return once no template is starting any more: what follows is timed."""
        self._pool.settle()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def score(
        self,
        *,
        problem: str,
        solution: Path,
        size: str | None = None,
        protocol: str = "quick",
        on_stage: Stage | None = None,
        on_artifact: ArtifactCall | None = None,
        should_stop: Callable[[], bool] | None = None,
        seed: int | None = None,
        noise_floor: float = 0.10,
    ) -> dict[str, Any]:
        """The result JSON (`schema: 1`). Raises JudgeFault, Stopped, NoSandbox, SizeTooLarge, UnknownProblem.

        `noise_floor` is the relative scatter of reference against reference on this host, as pooled
        by the portal (10 % until it knows better); `seed` replays the values of an earlier run. `on_artifact` gets
        the files of protocol `profile` by name: `trace.json.gz` and `timeline.json`.
        """
        chosen = load_problem(problem)
        size = size or self.target.cells[0]
        chosen.size(size)
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocol {protocol!r} is none of {PROTOCOLS}")
        if protocol not in UNTIMED and not self.target.timed:
            raise ValueError(f"target {self.target.slug} measures no times: use protocol check or profile")
        if self.target.ranks not in chosen.world_sizes:
            raise JudgeFault(f"{chosen.slug} is not defined for {self.target.ranks} ranks")
        if (reason := self.target.too_large(chosen, size)) is not None:
            raise SizeTooLarge(reason)
        files = solution_files(solution)
        if self.host.grade == "none" and _sha256(files) not in bundled_hashes():
            raise NoSandbox(list(self.host.reasons), self.host.fix)
        health = look(self.target) if self._shared else when_quiet(self.target)
        # Judges that share the cards see each other's jobs there.
        if reasons := health.lasting if self._shared else health.reasons:
            raise Unfit(reasons)
        run = Run(
            self,
            chosen,
            size,
            protocol,
            files,
            on_stage=on_stage,
            on_artifact=on_artifact,
            should_stop=should_stop,
            seed=seed,
            noise_floor=noise_floor,
        )
        try:
            found = run.score()
            found["health"] = None if self.target.device == "cpu" else health.shown()
            return found
        finally:
            run.close()
            if self._ahead is not None:
                self._ahead.go_on()
            self._pool.refill()

    def unfit(self) -> list[str]:
        """Why this host must not take work now: sick cards at once, busy or hot ones after a wait."""
        return when_quiet(self.target).reasons

    @property
    def grade(self) -> str:
        """The isolation grade of this host."""
        return self.host.grade

    def refill(self) -> None:
        """Warm up replacements; only while nothing is being timed."""
        self._pool.refill()

    def take(self) -> Template:
        """A warm template; whoever takes it ends it."""
        return self._pool.take()


def _sha256(files: dict[str, bytes]) -> str:
    return hashlib.sha256(files["solution.py"]).hexdigest()
