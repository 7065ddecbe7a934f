"""Random values for inputs: new at every call, cheap, and reproducible from (seed, call).

One `Draw` serves one call of all ranks: `inputs.py` draws for rank 0, 1, … one after the other, so
what ranks must share is drawn once and what must differ is drawn per rank.

Files see what is drawn, so it must not tell what else is drawn: neither the seed, nor other calls, nor what a peer
got. Each draw has a key of its own, derived from the secret seed by HMAC-SHA-256, and a keyed counter generator
(Philox 4×64, ten rounds). The fast generators that keep a state (SFC64, PCG) give it away: from five 64-bit words of
one rank's bytes an attack here computed the state, and from that, since numpy's seeding can be inverted, the seed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Shape = Sequence[int] | int

_BITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_VIEW = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SIGNED: dict[int, Any] = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class Draw:
    """Random values for call number `call` under the secret `seed`; the same draws in the same order are the same."""

    def __init__(self, seed: int, call: int) -> None:
        self.seed, self.call = seed, call
        self._secret = seed.to_bytes(max(16, (seed.bit_length() + 7) // 8), "little")
        self._draws = 0

    def _next(self) -> np.random.Generator:
        """A generator for one draw, from which nothing of any other can be learnt."""
        self._draws += 1
        told = b"%d/%d" % (self.call, self._draws)
        digest = hmac.digest(self._secret, told, hashlib.sha256)
        key, counter = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little")
        return np.random.Generator(np.random.Philox(key=key, counter=counter))

    def values(self, shape: Shape, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Random sign and mantissa, exponent from four neighbours: magnitudes in [0.125, 2).

        The cheap default where a problem declares no distribution: no element is zero, all differ.
        """
        if dtype not in (torch.bfloat16, torch.float16, torch.float32):
            return self.uniform(shape, -2.0, 2.0, dtype)
        size = dtype.itemsize
        mantissa = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}[dtype]
        bias = {torch.bfloat16: 127, torch.float16: 15, torch.float32: 127}[dtype]
        kind = _BITS[size]
        raw = self._next().integers(0, np.iinfo(kind).max, _shape(shape), dtype=kind, endpoint=True)
        sign = raw & kind(1 << (8 * size - 1))
        fraction = raw & kind((1 << mantissa) - 1)
        exponent = ((raw >> kind(mantissa)) & kind(3)) + kind(bias - 3)
        bits = sign | (exponent << kind(mantissa)) | fraction
        return torch.from_numpy(bits.view(_SIGNED[size])).view(dtype)

    def payload(self, shape: Shape, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Any bit pattern at all (NaN payloads, infinities, -0.0, subnormals): for pure data movement."""
        kind = _BITS[dtype.itemsize]
        raw = self._next().integers(0, np.iinfo(kind).max, _shape(shape), dtype=kind, endpoint=True)
        return torch.from_numpy(raw.view(_SIGNED[dtype.itemsize])).view(dtype)

    def normal(
        self, shape: Shape, dtype: torch.dtype = torch.bfloat16, std: float = 1.0, mean: float = 0.0
    ) -> torch.Tensor:
        """Normal values, drawn in float32 (float64 for a float64 dtype) and rounded to `dtype`."""
        kind: Any = np.float64 if dtype == torch.float64 else np.float32
        raw = np.asarray(self._next().standard_normal(_shape(shape), dtype=kind))
        raw *= kind(std)
        raw += kind(mean)
        return torch.from_numpy(raw).to(dtype)

    def uniform(
        self, shape: Shape, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Uniform values in [low, high), rounded to `dtype`."""
        raw = np.asarray(self._next().random(_shape(shape)))
        raw *= high - low
        raw += low
        return torch.from_numpy(raw).to(dtype)

    def integers(self, shape: Shape, low: int, high: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Integers in [low, high), exact in `dtype` (floating dtypes too)."""
        return torch.from_numpy(np.asarray(self._next().integers(low, high, _shape(shape)))).to(dtype)

    def mask(self, shape: Shape, p: float = 0.5) -> torch.Tensor:
        """Booleans that are true with probability `p`."""
        return torch.from_numpy(np.asarray(self._next().random(_shape(shape)) < p))

    def permutation(self, n: int) -> torch.Tensor:
        """A random order of 0..n-1, int64."""
        return torch.from_numpy(self._next().permutation(n).astype(np.int64))

    def integer(self, low: int, high: int) -> int:
        """One Python int in [low, high)."""
        return int(self._next().integers(low, high))

    def number(self, low: float, high: float) -> float:
        """One Python float in [low, high)."""
        return float(self._next().random() * (high - low) + low)

    def splits(self, total: int, parts: int, at_least: int = 0) -> list[int]:
        """`parts` random non-negative ints that add up to `total`, each at least `at_least`."""
        spare = total - at_least * parts
        if spare < 0:
            raise ValueError(f"{total} cannot be cut into {parts} parts of at least {at_least}")
        cuts = np.sort(self._next().integers(0, spare + 1, parts - 1))
        edges = np.concatenate([[0], cuts, [spare]])
        return [int(x) + at_least for x in np.diff(edges)]
