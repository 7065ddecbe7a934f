"""What can be said about a command's arguments before anything is started. Every refusal is a ValueError."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from evaluator.harness.source import solution_files
from problems.registry import load_problem, load_target

FILES = ("solution", "result", "manifest", "gate", "scores")  # to be read
COUNTS = ("workers", "world", "seeds", "limit")  # of which there must be some


def check(args: argparse.Namespace) -> None:
    """Raise ValueError or UnknownProblem with what to change; what a command does not have is not looked at."""
    for name in FILES:
        path = getattr(args, name, None)
        if isinstance(path, Path):
            text_of(path) if name != "solution" else demand_source(path)
    folder = getattr(args, "folder", None)
    if folder is not None and not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    out = getattr(args, "json", None)
    if out is not None and (out.is_dir() or not os.access(out.resolve().parent, os.W_OK)):
        raise ValueError(f"{out}: cannot be written there; name a file in a folder that exists")
    for name in COUNTS:
        count = getattr(args, name, None)
        if count is not None and not count > 0:
            raise ValueError(f"--{name} must be more than 0, not {count}")
    seed = getattr(args, "seed", None)
    if seed is not None and seed < 0:
        raise ValueError(f"--seed must not be negative: {seed}")
    target = getattr(args, "target", None)
    if target is not None:
        load_target(target)
    if args.command == "score":
        _check_score(args)


def _check_score(args: argparse.Namespace) -> None:
    problem, target = load_problem(args.problem), load_target(args.target)
    if args.size is not None:
        problem.size(args.size)
    if args.protocol != "check" and not target.timed:
        raise ValueError(f"target {target.slug} measures no times: use --protocol check")


def text_of(path: Path) -> str:
    """The text of a file; ValueError when there is none, or it is empty or not UTF-8."""
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: not a file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
    return _decoded(data, str(path))


def demand_source(path: Path) -> None:
    """Raise ValueError unless the file could be a solution: not empty, UTF-8 text, or a zip of such."""
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: not a file; give a .py, or a .zip with solution.py")
    try:
        files = solution_files(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error
    for name, data in files.items():
        _decoded(data, str(path) if len(files) == 1 else f"{path}, member {name}")


def _decoded(data: bytes, name: str) -> str:
    if not data.strip():
        raise ValueError(f"{name}: the file is empty")
    if (at := data.find(b"\0")) >= 0:
        raise ValueError(f"{name}: there is a NUL byte at offset {at}, so this is no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise ValueError(
            f"{name}: byte {error.start} (0x{byte:02x}) is not UTF-8; save it as UTF-8"
        ) from error
