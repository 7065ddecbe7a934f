"""Declared tolerances: plain data, free of torch, so that the web can read the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Tolerance:
    """|got - want| <= atol + atol_rms * rms(want) + rtol * |want|, in float64.

    `outliers` is the share of elements that may exceed the bound, by at most `outlier_factor` times.
    `nonfinite`: "fail" (any NaN or infinity fails) or "match" (the same kind at the same place).
    """

    atol: float = 0.0
    rtol: float = 0.0
    atol_rms: float = 0.0
    exact: bool = False
    outliers: float = 0.0
    outlier_factor: float = 10.0
    nonfinite: str = "fail"

    @classmethod
    def parse(cls, data: dict[str, Any], where: str) -> Tolerance:
        """From a TOML table; an unknown key is an error that names the place."""
        unknown = set(data) - set(cls.__dataclass_fields__)
        if unknown:
            raise ValueError(f"{where}: unknown tolerance keys {sorted(unknown)}")
        tolerance = cls(**data)
        if tolerance.nonfinite not in ("fail", "match"):
            raise ValueError(f"{where}: nonfinite must be 'fail' or 'match'")
        return tolerance


def tolerance_for(path: str, rules: list[tuple[str, Tolerance]]) -> Tolerance:
    """The tolerance of the first rule whose pattern matches the output's path.

    Raises KeyError when no rule does: an output nobody declared can't be judged.
    """
    for pattern, tolerance in rules:
        if fnmatchcase(path, pattern):
            return tolerance
    raise KeyError(f"no output rule matches {path!r}; declared: {[p for p, _ in rules]}")
