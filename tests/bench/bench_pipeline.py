"""How busy one host's scoring lane is with a backlog, and what a naive serial protocol would make of it.

    python -m tests.bench.bench_pipeline [--target h200x2] [--backlog 40] [--naive 2] [--limit S] [--out FILE.json]

One run, two parts. *Pipeline*: the backlog goes through the queue's own services and the worker's loop into the judge,
mode `quick`, on a database of its own. *Naive*: in the style of published scripts, for each of five trials a fresh
torchrun for the reference and one for the solution, the timed calls in the last trial's processes (12 a side, as
`quick`); a few correct files only, so that its rate is not burdened by hangs. On a target with cards the share of time
in which a kernel ran on a card is read beside both (NVML's utilisation, mean of the cards). Nothing else may run
meanwhile. After `--limit` seconds the worker takes no more of the backlog: what was judged until then is told.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from problems.registry import Target, load_target
from tests.bench.report import tell

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.test")

ROOT = Path(__file__).resolve().parents[2]
TRIALS, NAIVE_CALLS = 5, 12
LOOK_EVERY_MS = 100
MIX = (
    "allreduce_gather_and_sum.py",
    "allreduce_in_pieces.py",
    "allgather_broadcasts.py",
    "tp_rms_norm_gathered_sums.py",
    "allreduce_without_communication.py",
    "clip_grad_norm_flat.py",
    "allgather_wrong_dtype.py",
    "allreduce_cpp_sum.py",
    "tp_rms_norm_forgot_all_reduce.py",
    "clip_grad_norm_raises.py",
)
"""Correct, slower, wrong, of a wrong type, raising, and one with C++ to build: repeated until the backlog is full."""
CUDA_MIX = ("allgather_vector_pull_cuda.py", "scatter_vector_push_cuda.py")
"""On cards these in the place of the C++ one."""
NAIVE_FILES = {
    "cpu": ("allreduce_gather_and_sum.py", "allgather_broadcasts.py"),
    "cuda": ("allgather_vector_pull_cuda.py", "allreduce_gather_and_sum.py"),
}


def mix(device: str) -> tuple[str, ...]:
    """The files that make up the backlog."""
    if device == "cpu":
        return MIX
    return (*CUDA_MIX, *(name for name in MIX if "cpp" not in name))


def backlog(count: int, names: tuple[str, ...]) -> list[tuple[str, Path]]:
    """(problem, file) of every submission, in order."""
    from evaluator.harness.samples import all_samples

    known = {sample.file: sample for sample in all_samples(None)}
    chosen = [(known[name].problem, known[name].path) for name in names]
    return [chosen[index % len(chosen)] for index in range(count)]


@contextmanager
def busy(device: str) -> Iterator[list[float]]:
    """The share of time in which a kernel ran on a card, sampled while the block runs; filled at its end."""
    found: list[float] = []
    if device == "cpu":
        yield found
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    watch = subprocess.Popen([*command, "-lms", str(LOOK_EVERY_MS)], stdout=subprocess.PIPE, text=True)
    try:
        yield found
    finally:
        watch.terminate()
        told, _ = watch.communicate()
        found += [float(line) / 100 for line in told.splitlines() if line.strip().isdigit()]


def share(samples: list[float]) -> float | None:
    """Mean of samples; None without any."""
    return round(sum(samples) / len(samples), 3) if samples else None


def pipeline(target: str, files: list[tuple[str, Path]], limit_s: float) -> dict[str, Any]:
    """Send everything, then let one worker drain the queue; times from its start to the last result."""
    from evaluator import services
    from evaluator.harness.judge import Judge
    from evaluator.models import Attempt
    from evaluator.pulse import Pulse
    from evaluator.queues import rhythm
    from evaluator.worker import Worker
    from portal.submissions.models import Submission
    from problems.models import Target as TargetRow
    from tests import factories

    class Limited(Worker):
        """A worker that takes nothing more once the time is over."""

        def _fit(self) -> bool:
            return time.perf_counter() < until and super()._fit()

    author, target_row = factories.UserFactory(), TargetRow.objects.get(slug=target)
    for slug, path in files:
        fields = {
            "problem": problem_row(slug),
            "target": target_row,
            "mode": "quick",
            "size": load_target(target).cells[0],
        }
        factories.submission(author, text=path.read_text(), **fields)
    host = services.register_host(name="bench", target=target)
    pulse = Pulse(host, rhythm())
    pulse.start()
    with Judge(target) as judge:
        judge.settle()
        worker = Limited(host=host, target=target, judge=judge, pulse=pulse, self_test=lambda judge: False)
        with busy(judge.target.device) as samples:
            began = time.perf_counter()
            until = began + limit_s
            done = worker.drain()
            wall = time.perf_counter() - began
    pulse.end()
    results = [attempt.result for attempt in Attempt.objects.exclude(result=None)]
    if len(results) != done or (done < len(files) and wall < limit_s):
        raise SystemExit(f"{len(results)} of {len(files)} submissions have a result, {done} were taken")
    first_builds = sum(r["durations"].get("building", 0.0) for r in results if not r["build"]["cached"])
    stages: dict[str, float] = {}
    for found in results:
        for name, seconds in found["durations"].items():
            stages[name] = stages.get(name, 0.0) + seconds
    occupied = sum(stages.values()) - first_builds
    verdicts: dict[str, int] = {}
    for row in Submission.objects.exclude(verdict=""):
        verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
    return {
        "backlog": len(files),
        "submissions": done,
        "wall_s": round(wall, 1),
        "first_builds_s": round(first_builds, 1),
        "stages_s": {name: round(seconds, 1) for name, seconds in sorted(stages.items())},
        "lane_occupied_share_without_first_builds": round(occupied / (wall - first_builds), 3),
        "measuring_share_without_first_builds": round(
            sum(stages.get(name, 0.0) for name in ("correctness", "warmup", "timing"))
            / (wall - first_builds),
            3,
        ),
        "per_hour": round(3600 * done / wall),
        "per_hour_without_first_builds": round(3600 * done / (wall - first_builds)),
        "card_busy_share": share(samples),
        "verdicts": verdicts,
    }


def problem_row(slug: str) -> Any:
    """The problem's row in the bench's database."""
    from problems.models import Problem

    return Problem.objects.get(slug=slug)


def torchrun(target: Target, path: Path, slug: str, seed: int, calls: int, out: Path) -> float:
    """Seconds of one fresh job."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        str(target.ranks),
        "--standalone",
    ]
    worker = Path(__file__).with_name("naive_worker.py")
    command += [str(worker), str(path), slug, target.cells[0], str(seed), str(calls), str(out), target.device]
    began = time.perf_counter()
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    env |= target.env
    subprocess.run(command, check=True, cwd=ROOT, env=env, capture_output=True, timeout=180)
    return time.perf_counter() - began


def naive(target: Target, count: int) -> dict[str, Any]:
    """Five trials of two fresh jobs each, for `count` correct files."""
    import torch

    from problems.registry import load_problem

    rows = []
    with tempfile.TemporaryDirectory() as folder, busy(target.device) as samples:
        for slug, path in backlog(count, NAIVE_FILES[target.device]):
            began = time.perf_counter()
            for trial in range(TRIALS):
                calls = NAIVE_CALLS if trial == TRIALS - 1 else 0
                answers = []
                reference = load_problem(slug).folder / "reference.py"
                for role, file in (("reference", reference), ("solution", path)):
                    out = Path(folder) / f"{role}.pt"
                    torchrun(target, file, slug, 1000 + trial, calls, out)
                    answers.append(torch.load(out)["answer"])
                torch.testing.assert_close(*answers, rtol=1e-2, atol=1e-2, equal_nan=True)
            rows.append(time.perf_counter() - began)
    seconds = median(rows)
    return {
        "submissions": count,
        "jobs_each": 2 * TRIALS,
        "seconds_each": [round(row, 1) for row in rows],
        "per_hour": round(3600 / seconds, 1),
        "card_busy_share": share(samples),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pipeline", description=__doc__)
    parser.add_argument("--target", default="cpu4")
    parser.add_argument("--backlog", type=int, default=40)
    parser.add_argument("--naive", type=int, default=2)
    parser.add_argument("--limit", type=float, default=math.inf, metavar="S")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import django

    django.setup()
    from django.core.management import call_command
    from django.test.utils import setup_databases, teardown_databases

    from evaluator.harness.result import environment

    load, target = os.getloadavg()[0], load_target(args.target)
    before = setup_databases(verbosity=0, interactive=False)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PKB_BUILD_CACHE"] = cache  # so that first builds are first builds
        try:
            call_command("sync_catalog", verbosity=0)
            ours = pipeline(args.target, backlog(args.backlog, mix(target.device)), args.limit)
        finally:
            teardown_databases(before, verbosity=0)
    report = {
        "command": "python -m tests.bench.bench_pipeline " + " ".join(sys.argv[1:]),
        "environment": environment(),
        "load_before": round(load, 2),
        "aims": {"lane_occupied_share": 0.85, "times_naive": 5},
        "pipeline": ours,
    }
    tell(report, args.out)  # the naive part is long: a run that is cut short leaves this
    theirs = naive(target, args.naive)
    report |= {"naive": theirs, "times_naive": round(ours["per_hour"] / theirs["per_hour"], 1)}
    tell(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
