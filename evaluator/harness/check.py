"""One rank's answer against the expected one: every output, every inout argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch

from problems.compare import Wrong, compare
from problems.leaves import Answer, map_tensors, walk
from problems.registry import Problem
from problems.tolerance import Tolerance, tolerance_for


@dataclass(frozen=True)
class Mismatch:
    """Why an answer is not accepted. `kind`: structure, shape, dtype, value, nonfinite, invalid."""

    rank: int
    output: str
    kind: str
    message: str
    wrong: Wrong | None = None

    def __str__(self) -> str:
        return f"rank {self.rank}, {self.output}: {self.message}"


def _name(problem: Problem, path: str, inout: str | None) -> str:
    if inout is not None:
        return f"{inout}.{path}" if path else inout
    if len(problem.outputs) == 1 and not path:
        return problem.outputs[0].name
    return f"output {path}" if path else "output"


def _rules(problem: Problem, inout: str | None) -> list[tuple[str, Tolerance]]:
    return problem.output_rules if inout is None else problem.inout_rules(inout)


def _skips_values(problem: Problem, path: str, inout: str | None) -> bool:
    if inout is not None:
        return False
    for output in problem.outputs:
        if fnmatchcase(path, output.at):
            return output.checked_by == "validity"
    return False


def _plain(leaf: Any) -> Any:
    return list(leaf) if isinstance(leaf, torch.Size) else leaf


def _pairs(
    problem: Problem, got: Answer, want: Answer
) -> list[tuple[str | None, dict[str, Any], dict[str, Any]]]:
    pairs: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
        (None, dict(walk(got.output)), dict(walk(want.output)))
    ]
    for name in want.inout:
        pairs.append((name, dict(walk(got.inout.get(name))), dict(walk(want.inout[name]))))
    return pairs


def check_rank(problem: Problem, got: Answer, want: Answer, rank: int) -> Mismatch | None:
    """None when accepted, else the first mismatch (structure before shape before values)."""
    for inout, have, expect in _pairs(problem, got, want):
        where = "output" if inout is None else inout
        if set(have) != set(expect):
            message = f"has the parts {sorted(have)}, expected {sorted(expect)}"
            return Mismatch(rank, where, "structure", message)
        for path, wanted in expect.items():
            wrong = _check_leaf(problem, have[path], wanted, path, inout, rank)
            if wrong:
                return wrong
    return None


def _check_leaf(
    problem: Problem, got: Any, want: Any, path: str, inout: str | None, rank: int
) -> Mismatch | None:
    name = _name(problem, path, inout)
    if isinstance(want, torch.Tensor) != isinstance(got, torch.Tensor):
        return Mismatch(rank, name, "structure", f"is a {type(got).__name__}, not a {type(want).__name__}")
    if not isinstance(want, torch.Tensor):
        if _plain(got) == _plain(want):
            return None
        return Mismatch(rank, name, "value", f"is {got!r}, expected {want!r}")
    if _skips_values(problem, path, inout):
        return None
    if got.shape != want.shape:
        message = f"has shape {tuple(got.shape)}, expected {tuple(want.shape)}"
        return Mismatch(rank, name, "shape", message)
    tolerance = tolerance_for(path, _rules(problem, inout))
    wrong = compare(got, want, tolerance)
    if wrong is None:
        return None
    message = f"expected {wrong.expected}, got {wrong.got}"
    if wrong.index:
        where = f"{wrong.wrong} of {wrong.total} elements are wrong; first at {list(wrong.index)}"
        message = f"{where}: {message}"
    else:
        message = f"the value is wrong: {message}"
    if math.isfinite(wrong.max_error):
        message += f"; the largest error is {wrong.max_error:.3g}"
    kind = "nonfinite" if wrong.reason == "nonfinite" else "value"
    return Mismatch(rank, name, kind, message, wrong)


def margin_rank(problem: Problem, got: Answer, want: Answer) -> float:
    """The largest error as a share of its tolerance, over all floating outputs of one rank."""
    worst = 0.0
    for inout, have, expect in _pairs(problem, got, want):
        for path, wanted in expect.items():
            leaf = have.get(path)
            if not isinstance(wanted, torch.Tensor) or not isinstance(leaf, torch.Tensor):
                continue
            tolerance = tolerance_for(path, _rules(problem, inout))
            if leaf.is_complex():
                leaf, wanted = torch.view_as_real(leaf), torch.view_as_real(wanted)
            if tolerance.exact or tolerance.outliers or not leaf.is_floating_point():
                continue
            if leaf.numel() == 0 or _skips_values(problem, path, inout):
                continue
            worst = max(worst, _margin(leaf.double(), wanted.double(), tolerance))
    return worst


def _margin(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> float:
    both = torch.isfinite(got) & torch.isfinite(want)
    got, want = got[both], want[both]
    if got.numel() == 0:
        return 0.0
    base = tolerance.atol + tolerance.atol_rms * float(want.square().mean().sqrt())
    error, bound = (got - want).abs(), base + tolerance.rtol * want.abs()
    ratio = torch.where(error > 0, error / bound, torch.zeros_like(error))
    return float(ratio.max())


def home(answer: Answer) -> Answer:
    """The answer with its tensors in host memory, where a problem's own checks and hints work."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.cpu()

    inout = {name: map_tensors(tree, one) for name, tree in answer.inout.items()}
    return Answer(map_tensors(answer.output, one), inout)


def validity(
    problem: Problem, args: list[list[Any]], got: list[Answer], want: list[Answer], size: str
) -> Mismatch | None:
    """The problem's own check (`golden.check`), where it has one.

    It judges outputs whose order or choice is not defined (`checked_by = "validity"`), and may add to
    the comparison of values, such as exactness on some ranks only.
    """
    module = problem.module("golden")
    if not hasattr(module, "check"):
        return None
    got, want = [home(answer) for answer in got], [home(answer) for answer in want]
    found = module.check(args, got, want, problem.namespace(size))
    if found is None:
        return None
    rank, message = found
    return Mismatch(rank, "output", "invalid", message)
