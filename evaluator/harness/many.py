"""Score many files on one judge: a whole catalogue, or a folder of published names."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evaluator.harness.cardslots import demand_cards
from evaluator.harness.errors import JudgeFault, SizeTooLarge, Stopped
from evaluator.harness.judge import Judge
from evaluator.harness.samples import DEMO_TARGET
from evaluator.harness.sandbox import SandboxError
from evaluator.harness.source import BadFile
from problems import names
from problems.registry import UnknownProblem, all_problems, load_problem, load_target


@dataclass(frozen=True)
class Task:
    """One file to score, at most `limit_s` seconds long."""

    slug: str
    path: str
    size: str | None
    protocol: str
    limit_s: float


def find(folder: Path | None, *, ranks: int) -> Iterator[tuple[str, Path]]:
    """(slug, file): a folder's files by their names, or the references that are defined for so many `ranks`."""
    if folder is not None:
        yield from _named(folder)
        return
    for problem in all_problems():
        if ranks in problem.world_sizes:
            yield problem.slug, problem.folder / "reference.py"
        else:
            print(f"{problem.slug}: left out, not defined for {ranks} ranks", file=sys.stderr)


def _named(folder: Path) -> Iterator[tuple[str, Path]]:
    """(slug, file) of what lies in a folder; what is named otherwise is told, with the names that are near."""
    catalogue = {problem.slug: problem.number for problem in all_problems()}
    for path in sorted(path for path in folder.iterdir() if path.suffix in (".py", ".zip")):
        try:
            yield names.problem_of(path.name, catalogue), path
        except names.BadName as error:
            near = names.near(error.slug, catalogue) if error.slug else []
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            print(f"{path.name}: left out. {error.message}{hint}", file=sys.stderr)


def to_score(
    *,
    target: str,
    folder: Path | None = None,
    manifest: Path | None = None,
    problems: list[str] | None = None,
    left_out: list[str] | None = None,
) -> tuple[list[tuple[str, Path]], dict[str, Expected]]:
    """The files to score and how each must end. Raises ValueError where there is none, UnknownProblem for a name.

    `problems` and `left_out` choose among them, wherever the files come from.
    """
    only = {load_problem(name).slug for name in problems or []}
    without = {load_problem(name).slug for name in left_out or []}
    expected: dict[str, Expected] = {}
    if manifest is not None:
        found, expected = listed(manifest, target)
        nothing = f"{manifest}: it names no file for {target}"
    else:
        found = list(find(folder, ranks=load_target(target).ranks))
        nothing = (
            f"{folder or 'the catalogue'}: no file to score. Files are named N_slug_backend.py or .zip, such as "
            f"1_allreduce_cuda.py; N_ and _backend may be missing. Backends: {', '.join(names.BACKENDS)}."
        )
    if not found:
        raise ValueError(nothing)
    if missing := sorted(only - {slug for slug, _ in found}):
        raise ValueError(f"{manifest or folder or target}: no file for {', '.join(missing)}")
    files = [(slug, path) for slug, path in found if slug not in without and (not only or slug in only)]
    if not files:
        raise ValueError("--leave-out leaves nothing to score")
    for slug in sorted(without & {slug for slug, _ in found}):
        print(f"{slug}: left out as asked", file=sys.stderr)
    return files, expected


class _Worker:
    """One process's judge; made at the first file, closed at exit."""

    judge: Judge | None = None

    @classmethod
    def start(cls, target: str, workers: int) -> None:
        """Share the cores: threads that wait for each other on a crowded machine cost 10 to 20 times as much."""
        if workers > 1:
            torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // (2 * workers)))
        cls.judge = Judge(target, shared=workers > 1)
        atexit.register(cls.judge.close)


@dataclass(frozen=True)
class Expected:
    """How a file of a manifest must end."""

    verdicts: tuple[str, ...] = ("correct",)
    speedup_below: float | None = None
    """Where times are measured: the interval must not lie above it as a whole."""

    def met(self, row: dict[str, Any]) -> bool:
        """Whether a result is one that the manifest allows."""
        timing = row.get("timing")
        gained = self.speedup_below is not None and timing and timing["speedup_low"] > self.speedup_below
        return row["verdict"] in self.verdicts and not gained


def listed(manifest: Path, target: str) -> tuple[list[tuple[str, Path]], dict[str, Expected]]:
    """The files that a manifest (TOML, `[[samples]]`) names for one target, and how each must end.

    What is written for cards runs on every target with cards; the manifest names the one that judges it.
    """
    files, expected = [], {}
    device = load_target(target).device
    for row in tomllib.loads(manifest.read_text())["samples"]:
        named = row.get("target", DEMO_TARGET)
        if named != target and (device == "cpu" or load_target(named).device != device):
            continue
        files.append((load_problem(str(row["problem"])).slug, manifest.parent / row["file"]))
        verdicts = tuple(row.get("expect") or [row["verdict"]])
        expected[str(row["file"])] = Expected(verdicts, row.get("speedup_below"))
    return files, expected


def _one(judge: Judge, task: Task) -> dict[str, Any]:
    start = time.perf_counter()
    until = start + task.limit_s
    try:
        found = judge.score(
            problem=task.slug,
            solution=Path(task.path),
            size=task.size,
            protocol=task.protocol,
            should_stop=lambda: time.perf_counter() > until,
        )
    except Stopped:
        found = _fault(task.slug, "wall_limit", f"not done after {task.limit_s:.0f} s")
    except BadFile as refusal:
        found = _row(task.slug, "contract_error", "contract_error.file", str(refusal))
    except SizeTooLarge as refusal:
        found = _fault(task.slug, refusal.code, str(refusal))
    except (JudgeFault, SandboxError, UnknownProblem) as error:
        found = _fault(task.slug, "fault", str(error)[:2000])
    except Exception as error:  # noqa: BLE001 (what goes wrong with one file must not cost the results of the others)
        traceback.print_exc()
        found = _fault(task.slug, "fault", f"{type(error).__name__}: {error}"[:2000])
    found["wall_s"] = time.perf_counter() - start
    found["file"] = Path(task.path).name
    return found


def _row(slug: str, verdict: str, code: str, message: str) -> dict[str, Any]:
    return {"problem": {"slug": slug}, "verdict": verdict, "code": code, "message": message}


def _fault(slug: str, code: str, message: str) -> dict[str, Any]:
    return _row(slug, "infra_error", code, message)


def _task(task: Task) -> dict[str, Any]:
    if _Worker.judge is None:
        raise JudgeFault("the worker has no judge")
    return _one(_Worker.judge, task)


def _say(row: dict[str, Any]) -> None:
    timing = row.get("timing")
    gain = (
        f" {timing['speedup']:.3f} ({timing['speedup_low']:.3f} to {timing['speedup_high']:.3f})"
        if timing
        else ""
    )
    code = "" if row["verdict"] == "correct" else f" [{row['code']}] {row['message'][:300]}"
    name = row["problem"]["slug"] if row["file"] == "reference.py" else row["file"]
    print(f"{name}: {row['verdict']}{gain} in {row['wall_s']:.1f} s{code}", flush=True)


def _results(target: str, tasks: list[Task], workers: int) -> Iterator[dict[str, Any]]:
    """Rows as they come. Workers are spawned, not forked: a fork of a process that counted cards has none."""
    if workers == 1:
        with Judge(target) as judge:
            yield from (_one(judge, task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _Worker.start, (target, workers)) as pool:
        for done in as_completed([pool.submit(_task, task) for task in tasks]):
            yield done.result()


def score_many(
    target: str,
    files: list[tuple[str, Path]],
    *,
    size: str | None,
    protocol: str,
    workers: int,
    out: Path | None,
    limit_s: float = 300.0,
) -> list[dict[str, Any]]:
    """Score all files, one judge per worker. More than one worker only where nothing is timed.

    `limit_s` seconds per file; `out` is rewritten after every file, so that a run cut short leaves what it found.
    """
    if workers > 1 and protocol != "check":
        raise ValueError("never two timed jobs on one host: --workers needs --protocol check")
    demand_cards(load_target(target).cards or [])
    tasks = [Task(slug, str(path), size, protocol, limit_s) for slug, path in files]
    rows: list[dict[str, Any]] = []
    for row in _results(target, tasks, workers):
        rows.append(row)
        _say(row)
        if out is not None:
            out.write_text(json.dumps(rows, indent=1) + "\n")
    order = [(task.slug, Path(task.path).name) for task in tasks]
    rows.sort(key=lambda row: order.index((row["problem"]["slug"], row["file"])))
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n")
    return rows
