"""Score many files on one judge: a whole catalogue, or a folder of published names."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from evaluator.harness.errors import JudgeFault
from evaluator.harness.judge import Judge
from evaluator.harness.sandbox import SandboxError
from problems.registry import UnknownProblem, all_problems, load_problem

_NAME = re.compile(r"(?:\d+_)?(?P<slug>.+?)(?:_(?:cuda|triton|parallelkittens))?\Z")


def find(folder: Path | None, problems: list[str] | None) -> Iterator[tuple[str, Path]]:
    """(slug, file): the references of the catalogue, or the files of a folder by their names."""
    if folder is None:
        chosen = [load_problem(name) for name in problems] if problems else all_problems()
        yield from ((problem.slug, problem.folder / "reference.py") for problem in chosen)
        return
    for path in sorted(folder.glob("*.py")):
        match = _NAME.match(path.stem)
        try:
            slug = load_problem(match["slug"]).slug if match else ""
        except UnknownProblem:
            print(f"{path.name}: no problem of that name, left out", file=sys.stderr)
            continue
        if not problems or slug in problems:
            yield slug, path


def _one(judge: Judge, slug: str, path: Path, size: str | None, protocol: str) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        found = judge.score(problem=slug, solution=path, size=size, protocol=protocol)
    except (JudgeFault, SandboxError, UnknownProblem) as error:
        message = str(error)[:2000]
        found = {"problem": {"slug": slug}, "verdict": "infra_error", "code": "fault", "message": message}
    found["wall_s"] = time.perf_counter() - start
    return found


def _share(task: tuple[str, list[tuple[str, str]], str | None, str]) -> list[dict[str, Any]]:
    target, files, size, protocol = task
    rows = []
    with Judge(target) as judge:
        for slug, path in files:
            row = _one(judge, slug, Path(path), size, protocol)
            rows.append(row)
            timing = row.get("timing")
            gain = (
                f" {timing['speedup']:.3f} ({timing['speedup_low']:.3f} to {timing['speedup_high']:.3f})"
                if timing
                else ""
            )
            code = "" if row["verdict"] == "correct" else f" [{row['code']}] {row['message'][:300]}"
            print(f"{slug}: {row['verdict']}{gain} in {row['wall_s']:.1f} s{code}", flush=True)
    return rows


def score_many(
    target: str,
    files: list[tuple[str, Path]],
    *,
    size: str | None,
    protocol: str,
    workers: int,
    out: Path | None,
) -> list[dict[str, Any]]:
    """Score all files, one judge per worker. More than one worker only where nothing is timed."""
    if workers > 1 and protocol != "check":
        raise ValueError("never two timed jobs on one host: --workers needs --protocol check")
    plain = [(slug, str(path)) for slug, path in files]
    shares = [(target, plain[index::workers], size, protocol) for index in range(workers)]
    if workers == 1:
        rows = _share(shares[0])
    else:
        with ProcessPoolExecutor(workers) as pool:
            rows = [row for share in pool.map(_share, shares) for row in share]
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n")
    return rows
