"""Is one tensor close enough to another? The rules of measure of every problem.

Shape and dtype are compared exactly by the caller (they are claims of the rank); here the values
are. Non-finite values fail unless the output declares that they may match. Integers, booleans and
outputs declared `exact` must agree bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from problems.tolerance import Tolerance

LARGE = 1 << 20


@dataclass(frozen=True)
class Wrong:
    """The first element out of tolerance, and how bad it is overall."""

    index: tuple[int, ...]
    expected: str
    got: str
    wrong: int
    total: int
    max_error: float
    reason: str = "value"
    off_by: float | None = None
    """Error of that element and what it may be; None where values are compared bit for bit, or are not finite."""
    allowed: float | None = None


def _text(value: torch.Tensor) -> str:
    item = value.item()
    return repr(item) if not isinstance(item, float) else f"{item:.9g}"


def _report(bad: torch.Tensor, got: torch.Tensor, want: torch.Tensor, reason: str, worst: float) -> Wrong:
    flat = int(bad.reshape(-1).to(torch.uint8).argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), bad.shape)) if bad.ndim else ()
    return Wrong(
        index=index,
        expected=_text(want[index]),
        got=_text(got[index]),
        wrong=int(bad.sum()),
        total=bad.numel(),
        max_error=worst,
        reason=reason,
    )


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's bits as integers (complex: of both parts), to be compared whatever they mean."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor)
    return tensor.contiguous().view(kinds[tensor.dtype.itemsize])


def compare(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> Wrong | None:
    """None when `got` is within tolerance of `want` (same shape; `want` may be of a wider dtype)."""
    if got.shape != want.shape:
        raise ValueError(f"shapes differ: {tuple(got.shape)} and {tuple(want.shape)}")
    if got.numel() == 0:
        return None
    if got.is_cuda:
        want = want.to(got.device)
    elif got.numel() >= LARGE and torch.cuda.is_initialized():
        # Where golden has run on the card, millions of elements are compared there too.
        got, want = got.cuda(), want.cuda()
    inexact = got.dtype.is_floating_point or got.dtype.is_complex
    if not inexact or (tolerance.exact and got.dtype == want.dtype):
        left, right = (got, want) if not inexact else (as_bytes(got), as_bytes(want))
        bad = left != right
        if bad.ndim > got.ndim:
            bad = bad.any(-1)
        return _report(bad, got, want, "exact", float("nan")) if bool(bad.any()) else None
    if got.dtype.is_complex:
        got, want = torch.view_as_real(got.contiguous()), torch.view_as_real(want.to(torch.complex128))
    return _compare_floats(got.to(torch.float64), want.to(torch.float64), tolerance)


def _compare_floats(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> Wrong | None:
    finite = torch.isfinite(got)
    expected_finite = torch.isfinite(want)
    same = (got == want) | (torch.isnan(got) & torch.isnan(want))
    match_places = tolerance.nonfinite == "match"
    broken = (~finite | ~expected_finite) & ~same if match_places else ~finite
    if bool(broken.any()):
        return _report(broken, got, want, "nonfinite", float("inf"))
    both = finite & expected_finite
    error = torch.where(both, (got - want).abs(), torch.zeros_like(got))
    base = tolerance.atol
    if tolerance.atol_rms:
        rms = want[expected_finite].square().mean().sqrt() if bool(expected_finite.any()) else 0.0
        base += tolerance.atol_rms * float(rms)
    bound = torch.where(both, base + tolerance.rtol * want.abs(), torch.ones_like(got))
    bad = error > bound
    if not bool(bad.any()):
        return None
    worst = float(error.max())
    far = error > bound * tolerance.outlier_factor
    if tolerance.outliers and not bool(far.any()) and float(bad.double().mean()) <= tolerance.outliers:
        return None
    first = _report(far if tolerance.outliers and bool(far.any()) else bad, got, want, "value", worst)
    return replace(first, off_by=float(error[first.index]), allowed=float(bound[first.index]))
