"""The mutation gate: is a problem worth judging?

On `seeds` draws the reference (real gloo ranks) and golden in float32 must agree with golden in
float64, the reference with at least half of the tolerance to spare; and every mutant must fail:
zeros, the mean, the previous answer, an input handed through, rank 0 only, no communication, an
in-place effect left out, and values rounded through the next lower format. The judge checks several
calls, so a mutant fails when it does on one of the last draws: a single scalar may survive rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import torch

from evaluator.harness.check import Mismatch, check_rank, margin_rank, validity
from evaluator.harness.trustedranks import RankFailed, TrustedRanks
from problems.compare import as_bytes
from problems.draw import Draw
from problems.leaves import Answer, map_tensors, tensors
from problems.registry import Problem

DRAWS = 12  # fewer than the judge compares: five trials, and at least ten timed calls

LOWER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.bfloat16: torch.float8_e4m3fn,
    torch.float16: torch.float8_e4m3fn,
    torch.complex128: torch.float32,
    torch.complex64: torch.bfloat16,
}


@dataclass
class GateReport:
    """What the gate found; `problems` is empty when it passed."""

    slug: str
    world_size: int
    seeds: int = 0
    margin: float = 0.0
    killed: list[str] = field(default_factory=list)
    waived: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.problems


@dataclass
class Case:
    """One draw: all ranks' arguments and the truth."""

    args: list[list[Any]]
    answers: list[Answer]


def build(problem: Problem, size: str, world_size: int, seed: int, call: int) -> list[list[Any]]:
    """All ranks' arguments of one call."""
    draw = Draw(seed, call)
    return list(problem.module("inputs").build(problem.namespace(size), world_size, draw))


def golden(
    problem: Problem,
    args: list[list[Any]],
    size: str,
    world_size: int,
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> list[Answer]:
    """The truth for all ranks, computed on copies, so that the arguments stay as they are."""

    moved: dict[int, torch.Tensor] = {}

    def one(tensor: torch.Tensor) -> torch.Tensor:
        # Ranks often share one answer: it is moved once.
        if id(tensor) not in moved:
            moved[id(tensor)] = tensor.cpu()
        return moved[id(tensor)]

    def home(tree: Any) -> Any:
        return tree if device == "cpu" else map_tensors(tree, one)

    copies = [map_tensors(rank, lambda t: t.detach().clone().to(device)) for rank in args]
    with torch.device(device):
        raw = problem.module("golden").golden(copies, problem.namespace(size), world_size, dtype)
    answers = [item if isinstance(item, Answer) else Answer(item) for item in raw]
    return [Answer(home(a.output), {k: home(v) for k, v in a.inout.items()}) for a in answers]


def make_case(problem: Problem, size: str, world_size: int, seed: int, call: int) -> Case:
    args = build(problem, size, world_size, seed, call)
    return Case(args, golden(problem, args, size, world_size))


def accepted(problem: Problem, case: Case, got: list[Answer], size: str = "tiny") -> Mismatch | None:
    """None when all ranks' answers pass; else the first mismatch."""
    for rank, (answer, want) in enumerate(zip(got, case.answers, strict=True)):
        wrong = check_rank(problem, answer, want, rank)
        if wrong:
            return wrong
    return validity(problem, case.args, got, case.answers, size)


Mutant = Callable[[Problem, Case, Case, list[Answer]], list[Answer] | None]


def _each(got: list[Answer], fn: Callable[[torch.Tensor], torch.Tensor]) -> list[Answer]:
    return [
        Answer(map_tensors(a.output, fn), {k: map_tensors(v, fn) for k, v in a.inout.items()}) for a in got
    ]


def _zeros(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer]:
    return _each(got, torch.zeros_like)


def _mean(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer]:
    def fill(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.numel() <= 1 or tensor.dtype == torch.bool:
            return torch.zeros_like(tensor)  # the mean of one value is that value
        kind = torch.complex128 if tensor.dtype.is_complex else torch.float64
        wide = tensor.to(kind)
        finite = wide[torch.isfinite(wide)]
        return torch.full_like(tensor, finite.mean().to(tensor.dtype).item() if finite.numel() else 0)

    return _each(got, fill)


def _input(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer] | None:
    """Hand through an argument of the same shape and dtype wherever there is one that is not the answer."""
    found = False

    def replace(tree: Any, sources: list[torch.Tensor]) -> Any:
        def swap(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal found
            for source in sources:
                if source.shape == tensor.shape and source.dtype == tensor.dtype:
                    found = found or not torch.equal(as_bytes(source), as_bytes(tensor))
                    return source.detach().clone()
            return tensor

        return map_tensors(tree, swap)

    answers = []
    for args, answer in zip(case.args, got, strict=True):
        sources = [t for _, t in tensors(list(args)) if not t.is_sparse]
        answers.append(Answer(replace(answer.output, sources), answer.inout))
    return answers if found else None


def _rank_zero(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer] | None:
    rest = _each(got[1:], torch.zeros_like)
    return [got[0], *rest] if len(got) > 1 else None


def _no_effect(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer] | None:
    """The returned value is right, the inout arguments are as they were before the call."""
    names = [a.name for a in problem.arguments]
    if not got[0].inout:
        return None
    return [
        Answer(answer.output, {k: args[names.index(k)] for k in answer.inout})
        for args, answer in zip(case.args, got, strict=True)
    ]


def _rounded(problem: Problem, case: Case, previous: Case, got: list[Answer]) -> list[Answer] | None:
    found = False

    def low(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal found
        kind = LOWER.get(tensor.dtype)
        if kind is None or tensor.numel() == 0:
            return tensor
        found = True
        if tensor.dtype.is_complex:
            parts = torch.view_as_real(tensor).to(kind)
            return torch.view_as_complex(parts.to(torch.float64)).to(tensor.dtype)
        return tensor.to(kind).to(tensor.dtype)

    answers = _each(got, low)
    return answers if found else None


MUTANTS: dict[str, Mutant] = {
    "zeros": _zeros,
    "mean": _mean,
    "input": _input,
    "rank0": _rank_zero,
    "no_effect": _no_effect,
    "rounded": _rounded,
}


def run_gate(
    problem: Problem,
    pool: TrustedRanks,
    *,
    size: str = "tiny",
    seeds: int = 20,
    secret: int = 20261129,
) -> GateReport:
    """Run the whole gate for one problem on one pool of ranks."""
    world_size = pool.world_size
    report = GateReport(problem.slug, world_size, seeds, waived=problem.waivers)
    # Large draws are not kept: one and its predecessor must do.
    draws: deque[tuple[Case, list[Answer]]] = deque(maxlen=DRAWS + 1 if size == "tiny" else 2)
    threads = torch.get_num_threads()
    if size == "tiny":
        # Threads gain nothing on small tensors; on a busy machine their barriers cost 10 to 20 times as much.
        torch.set_num_threads(1)
    try:
        for call in range(seeds):
            case = make_case(problem, size, world_size, secret, call)
            draws.append((case, pool.call(problem, case.args)))
            _check_truth(problem, report, *draws[-1], size, call)
        if report.passed:
            _check_mutants(problem, report, pool, list(draws), size)
    except RankFailed as error:
        report.problems.append(str(error))
    finally:
        torch.set_num_threads(threads)
    return report


def _undeclared(problem: Problem, got: list[Answer]) -> list[str]:
    """Outputs of the reference whose dtype is not the declared one: the declaration is what people read."""
    found = set()
    for answer in got:
        for path, leaf in tensors(answer.output):
            declared = next(output for output in problem.outputs if fnmatchcase(path, output.at))
            if str(leaf.dtype) != f"torch.{declared.dtype}":
                found.add(f"output {declared.name} is {leaf.dtype}, declared {declared.dtype}")
    return sorted(found)


def _check_truth(
    problem: Problem, report: GateReport, case: Case, got: list[Answer], size: str, call: int
) -> None:
    wrong = accepted(problem, case, got, size)
    if wrong:
        report.problems.append(f"call {call}: the reference disagrees with golden: {wrong}")
        return
    report.problems += _undeclared(problem, got)
    for answer, want in zip(got, case.answers, strict=True):
        report.margin = max(report.margin, margin_rank(problem, answer, want))
    if report.margin > 0.5:
        report.problems.append(
            f"call {call}: the reference's own error is {report.margin:.2f} of the tolerance; at most 0.5"
        )
    if call < 3:
        other = golden(problem, case.args, size, len(case.args), torch.float32)
        for rank, (answer, want) in enumerate(zip(other, case.answers, strict=True)):
            wrong = check_rank(problem, answer, want, rank)
            if wrong:
                report.problems.append(f"call {call}: golden in float32 disagrees: {wrong}")


def _mutated(
    name: str,
    problem: Problem,
    pool: TrustedRanks,
    draw: tuple[Case, list[Answer]],
    previous: tuple[Case, list[Answer]],
) -> list[Answer] | None:
    """What a mutant would answer on one draw; None where it changes nothing. Raises RankFailed."""
    case, got = draw
    if name == "previous":
        return previous[1]
    if name == "no_communication":
        return pool.call(problem, case.args, communicate=False)
    return MUTANTS[name](problem, case, previous[0], got)


def _check_mutants(
    problem: Problem,
    report: GateReport,
    pool: TrustedRanks,
    draws: list[tuple[Case, list[Answer]]],
    size: str,
) -> None:
    for name in (*MUTANTS, "previous", "no_communication"):
        applied = False
        for previous, draw in reversed(list(pairwise(draws))):
            try:
                answers = _mutated(name, problem, pool, draw, previous)
            except RankFailed:
                killed = True
            else:
                applied = applied or answers is not None
                killed = answers is not None and accepted(problem, draw[0], answers, size) is not None
            if killed:
                report.killed.append(name)
                break
        else:
            if applied and name not in report.waived:
                report.problems.append(f"mutant {name!r} passes")
    for name in report.waived:
        if name in report.killed:
            report.problems.append(f"mutant {name!r} is waived but fails: remove the waiver")
